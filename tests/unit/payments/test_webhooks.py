"""Webhooks: where they may be, how calls are signed, and the secrets that are replaced."""

from ipaddress import ip_address

import pytest

from tollgate.actors.ledger.law.values import BookId
from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.net.public_addresses import is_public
from tollgate.serve.payments.api.rejections import FieldError
from tollgate.serve.payments.secrets.master_secret import MasterSecret, SealBroken
from tollgate.serve.payments.webhooks.calls import (
    ROLLOVER_MS,
    WebhookSecret,
    live,
    new_webhook_secret,
    replaced,
    webhook_url,
)
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer
from tollgate.serve.payments.webhooks.signature import TOLERANCE_S, is_signed, signature

STRICT = TargetPolicy()
LAX = TargetPolicy(allows_http=True, allows_private=True)
BODY = b'{"id":"65000000000000000a000001"}'
NOW_S = 1_800_000_000
NOW_MS = NOW_S * 1000
BOOK = BookId("55006bdfe0308c4cbfdbd0e1")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com:8443/hooks?shop=1",
        "https://192.0.43.7/hook",
        "https://[2606:4700::1]/hook",
        "HTTPS://EXAMPLE.COM/",
    ],
)
def test_an_address_is_taken(url: str) -> None:
    assert webhook_url(url, STRICT) == url


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://example.com/hook", "https"),
        ("https://127.0.0.1/hook", "private"),
        ("https://10.1.2.3", "private"),
        ("https://169.254.169.254/latest", "private"),
        ("https://[::1]:8443/", "private"),
        ("https://[fe80::1%25eth0]/", "private"),
        ("https://[::ffff:10.0.0.1]/", "private"),
        ("https://0.0.0.0/", "private"),
        ("https://localhost/hook", "private"),
        ("https://LOCALHOST./hook", "private"),
        ("https://2130706433/hook", "private"),
        ("https://shop.internal/hook", "private"),
        ("https://metadata.google.internal/", "private"),
    ],
)
def test_an_address_needs_leave(url: str, why: str) -> None:
    refused = webhook_url(url, STRICT)
    assert isinstance(refused, FieldError)
    assert why in refused.message
    assert webhook_url(url, LAX) == url


@pytest.mark.parametrize(
    "url",
    [
        *("", None, 5, "example.com", "/hook", "ftp://example.com", "https://", "https:///x"),
        *("https://user@example.com/", "https://:pass@example.com/", "https://example.com:0/"),
        *("https://example.com:99999/", "https://exa mple.com/", "https://[::1", "javascript:x"),
        *("https://example.com/\r\nX: y", "https://example.com/" + "x" * 2_048),
    ],
)
def test_an_address_is_refused_whatever_is_allowed(url: object) -> None:
    refused = webhook_url(url, LAX, "webhook.url")
    assert isinstance(refused, FieldError)
    assert refused.field == "webhook.url"


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "192.0.43.7", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_a_public_address(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255"),
        *("192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.2.1", "198.18.0.1", "240.0.0.1"),
        *(
            "224.0.0.1",
            "239.1.1.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd00::1",
        ),
        *("ff02::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "fec0::1"),
        *("64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::1", "fe80::1%eth0"),
        *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "64:ff9b:1::1"),
    ],
)
def test_an_address_that_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


def test_a_signature_is_that_of_existing_verifiers() -> None:
    # HMAC-SHA-256("whsec_test", '1800000000.{"id":…}'), as OpenSSL computes it.
    assert signature(BODY, ["whsec_test"], NOW_S) == (
        "t=1800000000,v1=ae0f534b64f0e774797fcdbda59a26a8dbaced417e814ca659755edf60c52ed2"
    )


def test_a_receiver_knows_our_calls() -> None:
    header = signature(BODY, ["old", "new"], NOW_S)
    for secret in ("old", "new"):
        assert is_signed(header, BODY, secret, NOW_S)
        assert is_signed(header, BODY, secret, NOW_S + TOLERANCE_S)
        assert is_signed(header, BODY, secret, NOW_S - TOLERANCE_S)


@pytest.mark.parametrize(
    ("header", "body", "secret", "now_s"),
    [
        (signature(BODY, ["secret"], NOW_S), BODY, "other", NOW_S),
        (signature(BODY, ["secret"], NOW_S), BODY + b" ", "secret", NOW_S),
        (signature(BODY, ["secret"], NOW_S), BODY, "secret", NOW_S + TOLERANCE_S + 1),
        (signature(BODY, ["secret"], NOW_S), BODY, "secret", NOW_S - TOLERANCE_S - 1),
        (signature(BODY, ["secret"], NOW_S).replace("t=18", "t=19"), BODY, "secret", NOW_S),
        (signature(BODY, ["secret"], NOW_S) + ",t=1800000000", BODY, "secret", NOW_S),
        (signature(BODY, [], NOW_S), BODY, "secret", NOW_S),
        (f"t={NOW_S},v1=é", BODY, "secret", NOW_S),
        ("", BODY, "secret", NOW_S),
        ("v1=abc", BODY, "secret", NOW_S),
        ("t=x,v1=abc", BODY, "secret", NOW_S),
        (f"t={NOW_S}," + "v1=a," * 1_000, BODY, "secret", NOW_S),
    ],
)
def test_a_receiver_knows_what_is_not_ours(
    header: str, body: bytes, secret: str, now_s: int
) -> None:
    assert not is_signed(header, body, secret, now_s)


def test_a_secret_is_replaced_over_a_day() -> None:
    first, second, third = (new_webhook_secret() for _ in range(3))
    assert len({first.secret, second.secret, third.secret}) == 3
    both = replaced((first,), second, NOW_MS)
    assert live(both, NOW_MS) == [second.secret, first.secret]
    assert live(both, NOW_MS + ROLLOVER_MS - 1) == [second.secret, first.secret]
    assert live(both, NOW_MS + ROLLOVER_MS) == [second.secret]
    again = replaced(both, third, NOW_MS + 1)
    assert live(again, NOW_MS + 1) == [third.secret, second.secret], "never more than two"
    assert replaced((), first, NOW_MS) == (first,)


def test_the_ledger_keeps_secrets_sealed() -> None:
    box = WebhookSecretSealer(MasterSecret(b"s" * 32))
    both = replaced((new_webhook_secret(),), new_webhook_secret(), NOW_MS)
    sealed = box.seal(both, BOOK)
    assert not any(each.secret in sealed for each in both)
    assert box.open(sealed, BOOK) == both
    for other, book in (
        (box, BookId("another")),
        (WebhookSecretSealer(MasterSecret(b"t" * 32)), BOOK),
    ):
        with pytest.raises(SealBroken):
            other.open(sealed, book)


@pytest.mark.parametrize("text", ["", "{}", "[1]", "[[1,2]]", '[["a"]]', "5"])
def test_what_is_sealed_and_is_no_secret_is_refused(text: str) -> None:
    master = MasterSecret(b"s" * 32)
    with pytest.raises(SealBroken):
        WebhookSecretSealer(master).open(master.sealer("webhooks").seal(text, BOOK), BOOK)


def test_a_secret_of_its_own() -> None:
    assert new_webhook_secret().secret.startswith("whsec_")
    assert new_webhook_secret().until_ms is None
    assert WebhookSecret("x") == WebhookSecret("x", None)
