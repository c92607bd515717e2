"""What is signed, for how long, and what is not."""

from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.manual_clock import ManualClock
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.sign.signer import (
    DEFAULT_EXPIRY_S,
    KEY_BYTES_MAX,
    SignedBucket,
    SignedUrl,
    Signer,
    SigningConfiguration,
    SigningCredentials,
    SigningRefusal,
    signed_url_scheme,
)

# Amazon's own example of a signed URL ("Authenticating Requests: Using Query Parameters").
EXAMPLE_KEYS = SigningCredentials(
    "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)
EXAMPLE_TIME_S = datetime(2013, 5, 24, tzinfo=UTC).timestamp()
EXAMPLE_BUCKET = SignedBucket(
    "examplebucket", ("",), "keys", endpoint="https://s3.amazonaws.com", is_bucket_in_host=True
)
EXAMPLE_URL = (
    "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
    "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
    "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
    "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
)
MAPS = SignedBucket("maps", ("public/", "open/2026-"), "keys", "us-west-2")
OWN = SignedBucket("own", ("",), "keys", endpoint="https://objects.example.org:9000")
HOSTED = SignedBucket(
    "hosted", ("",), "keys", endpoint="https://objects.example.com", is_bucket_in_host=True
)
BUCKETS = (MAPS, OWN, HOSTED, EXAMPLE_BUCKET)
CONFIGURATION = SigningConfiguration(BUCKETS, {"keys": EXAMPLE_KEYS})


def signer(configuration: SigningConfiguration = CONFIGURATION) -> Signer:
    return Signer(configuration, ManualClock(EXAMPLE_TIME_S + 0.9))


def signed(found: SignedUrl | SigningRefusal) -> SignedUrl:
    assert isinstance(found, SignedUrl), found
    return found


def expiry_s(found: SignedUrl | SigningRefusal) -> int:
    found = signed(found)
    (written,) = parse_qs(urlsplit(found.url).query)["X-Amz-Expires"]
    assert found.expires == datetime.fromtimestamp(EXAMPLE_TIME_S + int(written), UTC)
    return int(written)


def test_amazons_example_is_signed_to_the_letter() -> None:
    configuration = replace(CONFIGURATION, expiry_max_s=86_400)
    found = signer(configuration).sign("examplebucket", "test.txt", duration_s=86_400)
    assert signed(found).url == EXAMPLE_URL


def test_nothing_is_signed_by_default() -> None:
    empty = signer(SigningConfiguration())
    assert empty.sign("maps", "public/a") is SigningRefusal.BUCKET
    assert empty.sign_href("s3://maps/public/a") is SigningRefusal.BUCKET


@pytest.mark.parametrize(
    ("bucket", "key", "refused"),
    [
        ("maps", "public/a.tif", None),
        ("maps", "open/2026-01/a.tif", None),
        ("maps", "public/", None),
        ("maps", "private/a.tif", SigningRefusal.KEY),
        ("maps", "open/2025-01/a.tif", SigningRefusal.KEY),
        ("maps", "/public/a.tif", SigningRefusal.KEY),
        ("maps", "Public/a.tif", SigningRefusal.KEY),
        ("maps", "public", SigningRefusal.KEY),
        ("MAPS", "public/a.tif", SigningRefusal.BUCKET),
        ("maps2", "public/a.tif", SigningRefusal.BUCKET),
        ("", "public/a.tif", SigningRefusal.BUCKET),
        ("maps", "public/../private/a.tif", SigningRefusal.BAD_KEY),
        ("maps", "public/./a.tif", SigningRefusal.BAD_KEY),
        ("maps", "public/..", SigningRefusal.BAD_KEY),
        ("maps", "", SigningRefusal.BAD_KEY),
        ("maps", "public/a\n", SigningRefusal.BAD_KEY),
        ("maps", "public/\ud800", SigningRefusal.BAD_KEY),
        ("maps", "public/" + "é" * (KEY_BYTES_MAX // 2), SigningRefusal.BAD_KEY),
        ("maps", "public/..a", None),
    ],
)
def test_only_what_is_listed_is_signed(
    bucket: str, key: str, refused: SigningRefusal | None
) -> None:
    found = signer().sign(bucket, key)
    assert (found if isinstance(found, SigningRefusal) else None) is refused


def test_a_bucket_without_prefixes_is_not_signed_for() -> None:
    closed = SigningConfiguration((replace(MAPS, key_prefixes=()),), {"keys": EXAMPLE_KEYS})
    assert signer(closed).sign("maps", "public/a") is SigningRefusal.KEY


def test_without_its_credentials_a_bucket_is_not_signed_for() -> None:
    none = SigningConfiguration(BUCKETS)
    assert signer(none).sign("maps", "public/a") is SigningRefusal.CREDENTIALS


@pytest.mark.parametrize(
    ("minutes", "seconds"),
    [
        (None, DEFAULT_EXPIRY_S),
        (5, 300),
        (60, 3_600),
        (61, 3_600),
        (10**30, 3_600),
        (1, 60),
        (0, 60),
        (-5, 60),
    ],
)
def test_the_duration_is_clamped(minutes: int | None, seconds: int) -> None:
    assert expiry_s(signer().sign_href("s3://maps/public/a", minutes)) == seconds
    duration_s = None if minutes is None else minutes * 60
    assert expiry_s(signer().sign("maps", "public/a", duration_s)) == seconds


HREFS = {
    "s3://maps/public/a%20b": "https://maps.s3.us-west-2.amazonaws.com/public/a%20b",
    "https://maps.s3.us-west-2.amazonaws.com/public/a": (
        "https://maps.s3.us-west-2.amazonaws.com/public/a"
    ),
    "https://s3.us-west-2.amazonaws.com/maps/public/a?x=1": (
        "https://maps.s3.us-west-2.amazonaws.com/public/a"
    ),
    "https://maps.s3.amazonaws.com/public/a": "https://maps.s3.us-west-2.amazonaws.com/public/a",
    "https://objects.example.org:9000/own/a": "https://objects.example.org:9000/own/a",
    "s3://own/a": "https://objects.example.org:9000/own/a",
    "https://hosted.objects.example.com/a": "https://hosted.objects.example.com/a",
}


@pytest.mark.parametrize(("href", "url"), HREFS.items(), ids=HREFS.keys())
def test_an_href_is_signed_where_its_bucket_is(href: str, url: str) -> None:
    assert signed(signer().sign_href(href)).url.partition("?")[0] == url


@pytest.mark.parametrize(
    ("href", "refused"),
    [
        ("a.tif", SigningRefusal.NOT_AN_OBJECT),
        ("ftp://maps/public/a", SigningRefusal.NOT_AN_OBJECT),
        ("https://key:secret@maps.s3.amazonaws.com/public/a", SigningRefusal.NOT_AN_OBJECT),
        ("s3://maps", SigningRefusal.NOT_AN_OBJECT),
        ("s3://other/public/a", SigningRefusal.BUCKET),
        ("s3://maps/private/a", SigningRefusal.KEY),
        ("s3://maps/public%2F..%2Fprivate/a", SigningRefusal.BAD_KEY),
        ("gs://maps/public/a", SigningRefusal.ELSEWHERE),
        ("https://maps.s3.eu-west-1.amazonaws.com/public/a", SigningRefusal.ELSEWHERE),
        ("https://maps.example.com/public/a", SigningRefusal.ELSEWHERE),
        ("https://s3.amazonaws.com/own/a", SigningRefusal.ELSEWHERE),
        ("https://maps.objects.example.com/public/a", SigningRefusal.ELSEWHERE),
    ],
)
def test_an_href_elsewhere_is_refused(href: str, refused: SigningRefusal) -> None:
    assert signer().sign_href(href) is refused


def test_a_session_token_and_who_pays_are_part_of_the_signature() -> None:
    keys = replace(EXAMPLE_KEYS, session_token="session/token")
    paid = SigningConfiguration((replace(MAPS, is_requester_pays=True),), {"keys": keys})
    plain = signed(signer().sign("maps", "public/a")).url
    query = parse_qs(urlsplit(signed(signer(paid).sign("maps", "public/a")).url).query)
    assert query["X-Amz-Security-Token"] == ["session/token"]
    assert query["x-amz-request-payer"] == ["requester"]
    assert query["X-Amz-Signature"] != parse_qs(urlsplit(plain).query)["X-Amz-Signature"]


def test_the_callers_identifier_is_kept_out_of_the_url() -> None:
    found = signed(signer().sign_href("s3://maps/public/a", caller_id="team-7"))
    assert found.caller_id == "team-7"
    assert "team-7" not in found.url


def test_no_text_of_keys_or_of_what_is_signed_has_the_secret() -> None:
    keys = replace(EXAMPLE_KEYS, session_token="session/token")
    configuration = replace(CONFIGURATION, credentials={"keys": keys})
    found = signed(signer(configuration).sign("maps", "public/a"))
    for text in (repr(keys), repr(configuration), repr(found), repr(signer(configuration))):
        assert keys.secret_access_key not in text
        assert "session/token" not in text
        assert "X-Amz-Signature" not in text


@pytest.mark.parametrize(
    "wrong",
    [
        {"buckets": (MAPS, MAPS)},
        {"default_expiry_s": 10},
        {"default_expiry_s": 7_200},
        {"expiry_max_s": 8 * 24 * 3_600},
    ],
)
def test_a_configuration_that_contradicts_itself_is_none(wrong: dict[str, object]) -> None:
    with pytest.raises(AssertionError):
        replace(CONFIGURATION, **wrong)  # type: ignore[arg-type]  # (any of its fields)


def test_the_ready_made_scheme_is_one_that_we_accept() -> None:
    scheme = signed_url_scheme("https://tollgate.example.com/catalog-auth")
    assert signed_url_scheme("https://tollgate.example.com/catalog-auth/") == scheme
    document = locate({"type": "Catalog", "auth:schemes": {"tollgate": scheme}})
    (located,) = document.schemes
    assert located.type == "signedUrl"
