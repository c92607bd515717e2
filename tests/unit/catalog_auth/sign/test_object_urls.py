"""Which object a URL means: every form of part D, and what is none."""

import pytest

from tollgate.serve.catalog_auth.objects.hosts import Provider, Style
from tollgate.serve.catalog_auth.objects.urls import (
    URL_LENGTH_MAX,
    NotAnObject,
    ObjectLocation,
    Reason,
    https_url,
    parse_object_url,
)

Place = tuple[Provider, str, str, str | None, str | None, Style]
AWS, GOOGLE, AZURE, CUSTOM = Provider.AWS, Provider.GOOGLE, Provider.AZURE, Provider.CUSTOM
URI, HOSTED, PATH = Style.URI, Style.VIRTUAL_HOSTED, Style.PATH
S3_WEST = "https://s3.us-west-2.amazonaws.com"
ARN = "arn:aws:s3:us-west-2:123456789012:accesspoint/maps"
POINT = "https://s3-accesspoint.us-west-2.amazonaws.com"
ACCOUNT = "https://acct.blob.core.windows.net"

FORMS: dict[str, Place] = {
    "s3://b/k": (AWS, "b", "k", None, None, URI),
    "s3a://B_u/k": (AWS, "B_u", "k", None, None, URI),
    "S3://b/k": (AWS, "b", "k", None, None, URI),
    f"s3://{ARN}/k/l": (AWS, ARN, "k/l", "us-west-2", POINT, URI),
    "gs://b/k": (GOOGLE, "b", "k", None, None, URI),
    "az://c/k": (AZURE, "c", "k", None, None, URI),
    "abfs://c/k": (AZURE, "c", "k", None, None, URI),
    "abfss://c@acct.dfs.core.windows.net/k": (
        *(AZURE, "c", "k", None, "https://acct.dfs.core.windows.net", URI),
    ),
    "https://b.s3.us-west-2.amazonaws.com/k": (AWS, "b", "k", "us-west-2", S3_WEST, HOSTED),
    "https://B.S3.US-West-2.AmazonAWS.com/K": (AWS, "b", "K", "us-west-2", S3_WEST, HOSTED),
    "https://a.b.s3.us-west-2.amazonaws.com/k": (AWS, "a.b", "k", "us-west-2", S3_WEST, HOSTED),
    "https://b.s3.dualstack.eu-west-1.amazonaws.com/k": (
        *(AWS, "b", "k", "eu-west-1", "https://s3.dualstack.eu-west-1.amazonaws.com", HOSTED),
    ),
    "https://b.s3-us-west-2.amazonaws.com/k": (
        *(AWS, "b", "k", "us-west-2", "https://s3-us-west-2.amazonaws.com", HOSTED),
    ),
    "https://b.s3.amazonaws.com/k": (AWS, "b", "k", None, "https://s3.amazonaws.com", HOSTED),
    "https://b.s3-accelerate.amazonaws.com/k": (
        *(AWS, "b", "k", None, "https://s3-accelerate.amazonaws.com", HOSTED),
    ),
    "https://b.s3-fips.us-gov-west-1.amazonaws.com/k": (
        *(AWS, "b", "k", "us-gov-west-1", "https://s3-fips.us-gov-west-1.amazonaws.com", HOSTED),
    ),
    "https://b.s3.cn-north-1.amazonaws.com.cn/k": (
        *(AWS, "b", "k", "cn-north-1", "https://s3.cn-north-1.amazonaws.com.cn", HOSTED),
    ),
    "https://s3.us-west-2.amazonaws.com/b/k/l": (AWS, "b", "k/l", "us-west-2", S3_WEST, PATH),
    "https://s3-eu-west-1.amazonaws.com/b/k": (
        *(AWS, "b", "k", "eu-west-1", "https://s3-eu-west-1.amazonaws.com", PATH),
    ),
    "https://s3.amazonaws.com/b.with.dots/k": (
        *(AWS, "b.with.dots", "k", None, "https://s3.amazonaws.com", PATH),
    ),
    "https://s3-external-1.amazonaws.com/b/k": (
        *(AWS, "b", "k", "us-east-1", "https://s3-external-1.amazonaws.com", PATH),
    ),
    "https://maps-123456789012.s3-accesspoint.us-west-2.amazonaws.com/k": (
        *(AWS, ARN, "k", "us-west-2", POINT, Style.ACCESS_POINT),
    ),
    "https://m-123456789012.s3-accesspoint.us-gov-west-1.amazonaws.com/k": (
        *(AWS, "arn:aws-us-gov:s3:us-gov-west-1:123456789012:accesspoint/m", "k"),
        *("us-gov-west-1", "https://s3-accesspoint.us-gov-west-1.amazonaws.com"),
        Style.ACCESS_POINT,
    ),
    "https://m-123456789012.s3-accesspoint.cn-north-1.amazonaws.com.cn/k": (
        *(AWS, "arn:aws-cn:s3:cn-north-1:123456789012:accesspoint/m", "k"),
        *("cn-north-1", "https://s3-accesspoint.cn-north-1.amazonaws.com.cn"),
        Style.ACCESS_POINT,
    ),
    "https://storage.googleapis.com/b/k": (
        *(GOOGLE, "b", "k", None, "https://storage.googleapis.com", PATH),
    ),
    "https://a.b.storage.googleapis.com/k": (
        *(GOOGLE, "a.b", "k", None, "https://storage.googleapis.com", HOSTED),
    ),
    "https://acct.blob.core.windows.net/c/k": (AZURE, "c", "k", None, ACCOUNT, PATH),
    "https://acct.blob.core.windows.net/$root/k": (AZURE, "$root", "k", None, ACCOUNT, PATH),
    # The host's first label: a guess, where nothing better is known.
    "https://queue.amazonaws.com/k": (
        *(CUSTOM, "queue", "k", None, "https://amazonaws.com", Style.FIRST_LABEL),
    ),
    "https://b.example.com/p/k": (
        *(CUSTOM, "b", "p/k", None, "https://example.com", Style.FIRST_LABEL),
    ),
    "http://b.example.com:9000/k": (
        *(CUSTOM, "b", "k", None, "http://example.com:9000", Style.FIRST_LABEL),
    ),
}


@pytest.mark.parametrize(("url", "place"), FORMS.items(), ids=FORMS.keys())
def test_every_form_is_understood(url: str, place: Place) -> None:
    assert parse_object_url(url) == ObjectLocation(*place)


def test_only_the_first_label_is_a_guess() -> None:
    found = {url: parse_object_url(url) for url in FORMS}
    guesses = [
        u for u, place in found.items() if isinstance(place, ObjectLocation) and place.is_guess
    ]
    assert guesses == list(FORMS)[-3:]


NONE: dict[str, Reason] = {
    "": Reason.NO_URL,
    "a.tif": Reason.NO_URL,
    "../b/k": Reason.NO_URL,
    "//b.s3.amazonaws.com/k": Reason.NO_URL,
    "s3://b/k\nx": Reason.NO_URL,
    "https://[::1/k": Reason.NO_URL,
    "https://b.s3.amazonaws.com:http/k": Reason.NO_URL,
    f"s3://b/{'k' * URL_LENGTH_MAX}": Reason.NO_URL,
    "ftp://b.example.com/k": Reason.OTHER_SCHEME,
    "file:///b/k": Reason.OTHER_SCHEME,
    "mailto:b@example.com": Reason.OTHER_SCHEME,
    "https://user:pass@b.s3.amazonaws.com/k": Reason.HAS_USER,
    "s3://key:secret@b/k": Reason.HAS_USER,
    "abfss://c:secret@acct.dfs.core.windows.net/k": Reason.HAS_USER,
    "s3:///k": Reason.NO_BUCKET,
    "s3:b/k": Reason.NO_BUCKET,
    "https://s3.amazonaws.com//k": Reason.NO_BUCKET,
    "s3://arn:aws:s3:us-west-2:123456789012:bucket/maps/k": Reason.NO_BUCKET,
    "s3://b": Reason.NO_KEY,
    "s3://b/": Reason.NO_KEY,
    "s3://b/?list-type=2": Reason.NO_KEY,
    "https://s3.amazonaws.com/b": Reason.NO_KEY,
    "https://acct.blob.core.windows.net/c": Reason.NO_KEY,
    "s3://b/%ff": Reason.NOT_UTF8,
    "https://b.s3-website-us-west-2.amazonaws.com/k": Reason.WEBSITE,
    "https://storage.googleapis.com/storage/v1/b/b/o/k": Reason.API_CALL,
    "https://localhost/b/k": Reason.NO_LABELS,
    "http://127.0.0.1:9000/b/k": Reason.NO_LABELS,
    "http://[::1]:9000/b/k": Reason.NO_LABELS,
}


@pytest.mark.parametrize(("url", "reason"), NONE.items(), ids=[url[:60] for url in NONE])
def test_what_is_no_object_says_why(url: str, reason: Reason) -> None:
    assert parse_object_url(url) == NotAnObject(reason)


def test_each_reason_is_given_for_something() -> None:
    assert set(NONE.values()) == set(Reason)


ESCAPES = {
    "a%20b": "a b",
    "a%2Fb": "a/b",
    "a%252Fb": "a%2Fb",
    "a+b": "a+b",
    "a%2Bb": "a+b",
    "%C3%A9": "é",
    "é": "é",
    "a%zzb": "a%zzb",
    "a//b": "a//b",
    "/a": "/a",
    "a/": "a/",
    "a/../b": "a/../b",
    "a%3Fb%23c": "a?b#c",
    "a?versionId=1": "a",
    "a#part": "a",
    "a:b@c": "a:b@c",
}


@pytest.mark.parametrize(("written", "key"), ESCAPES.items(), ids=ESCAPES.keys())
@pytest.mark.parametrize(
    "origin", ["s3://b", "https://b.s3.amazonaws.com", "https://s3.amazonaws.com/b"]
)
def test_escapes_are_decoded_exactly_once(origin: str, written: str, key: str) -> None:
    location = parse_object_url(f"{origin}/{written}")
    assert isinstance(location, ObjectLocation)
    assert (location.bucket, location.key) == ("b", key)


OWN = "https://objects.example.org"
TEMPLATES: dict[str, tuple[dict[str, object], str, Place]] = {
    "fixed endpoint": (
        {"platform": OWN, "type": "custom-s3"},
        "s3://b/k",
        (CUSTOM, "b", "k", None, OWN, URI),
    ),
    "fixed endpoint over https": (
        {"platform": f"{OWN}/", "region": "north"},
        f"{OWN}/b/k",
        (CUSTOM, "b", "k", "north", OWN, PATH),
    ),
    "an address with a port": (
        {"platform": "http://127.0.0.1:9000"},
        "http://127.0.0.1:9000/b/k",
        (CUSTOM, "b", "k", None, "http://127.0.0.1:9000", PATH),
    ),
    "a path before the bucket": (
        {"platform": f"{OWN}/s3"},
        f"{OWN}/s3/b/k",
        (CUSTOM, "b", "k", None, f"{OWN}/s3", PATH),
    ),
    "bucket in the host, left open": (
        {"platform": "https://{bucket}.{region}.example.com"},
        "https://a.b.eu-fr.example.com/k",
        (CUSTOM, "a.b", "k", "eu-fr", "https://eu-fr.example.com", HOSTED),
    ),
    "bucket and region in the host, filled in": (
        {
            "platform": "https://{bucket}.{region}.example.com",
            "bucket": "stac",
            "region": "eu-fr",
        },
        "s3://stac/k",
        (CUSTOM, "stac", "k", "eu-fr", "https://eu-fr.example.com", URI),
    ),
    "bucket in the path": (
        {"platform": f"{OWN}/{{bucket}}"},
        f"{OWN}/b/k",
        (CUSTOM, "b", "k", None, OWN, PATH),
    ),
    "Amazon's template": (
        {
            "platform": "https://{bucket}.s3.{region}.amazonaws.com",
            "type": "aws-s3",
            "bucket": "met",
            "region": "eu-west-2",
        },
        "s3://met/k",
        (AWS, "met", "k", "eu-west-2", "https://s3.eu-west-2.amazonaws.com", URI),
    ),
    "the region of a host that names none": (
        {"platform": "https://{bucket}.s3.{region}.amazonaws.com", "region": "eu-west-2"},
        "https://met.s3.amazonaws.com/k",
        (AWS, "met", "k", "eu-west-2", "https://s3.amazonaws.com", HOSTED),
    ),
    "Azure's account": (
        {"platform": "https://{account}.blob.core.windows.net", "account": "acct"}
        | {"type": "ms-azure"},
        "az://c/k",
        (AZURE, "c", "k", None, ACCOUNT, URI),
    ),
}


@pytest.mark.parametrize(("scheme", "url", "place"), TEMPLATES.values(), ids=TEMPLATES.keys())
def test_storage_schemes_tell_the_endpoint(
    scheme: dict[str, object], url: str, place: Place
) -> None:
    assert parse_object_url(url, {"store": scheme}) == ObjectLocation(*place)


def test_a_storage_scheme_of_another_bucket_tells_nothing() -> None:
    schemes = {"other": {"platform": OWN, "bucket": "other"}}
    location = parse_object_url("s3://b/k", schemes)
    assert location == ObjectLocation(AWS, "b", "k", None, None, URI)


def test_the_first_storage_scheme_that_fits_is_taken() -> None:
    schemes = {
        "wrong type": 7,
        "no platform": {"type": "custom-s3"},
        "azure": {"type": "ms-azure", "platform": ACCOUNT},
        "first": {"platform": OWN},
        "second": {"platform": "https://second.example.org"},
    }
    location = parse_object_url("s3://b/k", schemes)
    assert isinstance(location, ObjectLocation)
    assert location.endpoint == OWN


@pytest.mark.parametrize("schemes", [None, {}, [], "x", {"a": None}, {"a": {"platform": "x"}}])
def test_malformed_storage_schemes_change_nothing(schemes: object) -> None:
    found = parse_object_url("s3://b/k", schemes)  # type: ignore[arg-type]  # (as found)
    assert found == parse_object_url("s3://b/k")


HTTPS = {
    "s3://b/k l": "https://b.s3.amazonaws.com/k%20l",
    "s3://b.dotted/k": "https://s3.amazonaws.com/b.dotted/k",
    "s3://Upper/k": "https://s3.amazonaws.com/Upper/k",
    f"s3://{ARN}/k": "https://maps-123456789012.s3-accesspoint.us-west-2.amazonaws.com/k",
    "gs://b/k": "https://storage.googleapis.com/b/k",
    "abfss://c@acct.dfs.core.windows.net/k": "https://acct.dfs.core.windows.net/c/k",
    "az://c/k": None,
    "https://s3.amazonaws.com/b/k?x=1": "https://s3.amazonaws.com/b/k",
}


@pytest.mark.parametrize(("url", "called"), HTTPS.items(), ids=HTTPS.keys())
def test_an_object_has_a_url_for_http_clients(url: str, called: str | None) -> None:
    location = parse_object_url(url)
    assert isinstance(location, ObjectLocation)
    assert https_url(location) == called
