"""Keys: made, stored, presented."""

import pickle
import re
from base64 import b64encode

import pytest

from tollgate.serve.payments.secrets.keys import (
    KeyDigests,
    has_checksum,
    is_key,
    is_same_digest,
    new_app_key,
    new_public_key,
    read_basic,
)
from tollgate.serve.payments.secrets.master_secret import MasterSecret, SealBroken

SECRET = MasterSecret(b"s" * 32)
UUID_KEY = "4ff7de37-dddf-4e51-8cc9-48b61a102923"


def basic(credentials: str, scheme: str = "Basic") -> str:
    return f"{scheme} {b64encode(credentials.encode()).decode()}"


def test_a_new_key_has_a_prefix_and_a_checksum() -> None:
    key = new_app_key()
    assert re.fullmatch(r"sk_[0-9A-Za-z]{36}", key)
    assert has_checksum(key)
    assert is_key(key)
    assert read_basic(basic(f":{key}")) == key


def test_no_two_keys_are_the_same() -> None:
    assert len({new_app_key() for _ in range(100)}) == 100
    assert len({new_public_key() for _ in range(100)}) == 100


def test_every_character_of_a_key_counts_for_the_checksum() -> None:
    key = new_app_key()
    for place in range(len(key)):
        other = "x" if key[place] != "x" else "y"
        assert not has_checksum(key[:place] + other + key[place + 1 :])
    assert not has_checksum(key[:-1])
    assert not has_checksum(key + "0")
    assert not has_checksum("")


def test_a_checksum_is_the_same_for_ever() -> None:
    assert has_checksum("sk_" + "0" * 30 + "2C8GjS")


def test_a_public_key_looks_like_a_uuid() -> None:
    assert re.fullmatch(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", new_public_key())


def test_what_is_stored_tells_nothing_of_the_key() -> None:
    stored = KeyDigests(SECRET).stored(UUID_KEY)
    assert stored.last4 == "2923"
    assert re.fullmatch(r"[0-9a-f]{64}", stored.digest)
    assert stored == KeyDigests(SECRET).stored(UUID_KEY)
    assert stored.digest != KeyDigests(MasterSecret(b"t" * 32)).stored(UUID_KEY).digest


def test_a_presented_key_has_the_digest_that_is_stored() -> None:
    digests = KeyDigests(SECRET)
    stored = digests.stored(UUID_KEY).digest
    assert is_same_digest(digests.presented(basic(f":{UUID_KEY}")), stored)
    assert not is_same_digest(digests.presented(basic(f":{UUID_KEY}0")), stored)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic",
        "Basic ",
        f"Bearer {UUID_KEY}",
        f"Basic {UUID_KEY}",
        "Basic Og==",
        "Basic %%%%",
        "Basic Ozo",
        basic(UUID_KEY),
        basic(f"user:{UUID_KEY}"),
        basic(f" :{UUID_KEY}"),
        basic(f":{UUID_KEY}\n"),
        basic(f":{UUID_KEY} "),
        basic(":schlüssel"),
        basic(":" + "k" * 257),
        basic(":k") + " x",
        basic(":k") + ", " + basic(":k"),
        f"Basic {'A' * 2_000}",
    ],
)
def test_a_malformed_header_is_looked_up_as_the_digest_of_no_key(header: str | None) -> None:
    assert read_basic(header) is None
    digest = KeyDigests(SECRET).presented(header)
    assert digest == KeyDigests(SECRET).presented(None)
    assert re.fullmatch(r"[0-9a-f]{64}", digest)


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC", "Basic  "])
def test_the_scheme_has_no_case(scheme: str) -> None:
    assert read_basic(basic(f":{UUID_KEY}", scheme)) == UUID_KEY


def test_a_key_may_hold_colons() -> None:
    assert read_basic(basic(":a:b")) == "a:b"
    assert read_basic(basic("::")) == ":"


def test_a_secret_does_not_show_itself() -> None:
    assert repr(SECRET) == "MasterSecret(…)"
    assert "s" * 8 not in f"{SECRET} {[SECRET]!r}"
    for each in (SECRET, SECRET.sealer("webhooks")):
        with pytest.raises(TypeError):
            pickle.dumps(each)


def test_keys_for_different_purposes_differ() -> None:
    assert SECRET.key_for("a") == MasterSecret(b"s" * 32).key_for("a")
    assert SECRET.key_for("a") != SECRET.key_for("b")
    assert len(SECRET.key_for("a")) == 32


def test_a_sealed_text_is_opened_again() -> None:
    sealer = SECRET.sealer("webhooks")
    sealed = sealer.seal("Geheimnis ✓", "merchant")
    assert "Geheimnis" not in sealed
    assert sealed != sealer.seal("Geheimnis ✓", "merchant"), "no two are the same"
    assert SECRET.sealer("webhooks").open(sealed, "merchant") == "Geheimnis ✓"


def test_a_sealed_text_is_opened_nowhere_else() -> None:
    sealed = SECRET.sealer("webhooks").seal("secret", "merchant")
    changed = sealed[:-4] + ("AAAA" if sealed[-4:] != "AAAA" else "BBBB")
    for sealer, text, context in (
        (SECRET.sealer("webhooks"), sealed, "another merchant"),
        (SECRET.sealer("tokens"), sealed, "merchant"),
        (MasterSecret(b"t" * 32).sealer("webhooks"), sealed, "merchant"),
        (SECRET.sealer("webhooks"), changed, "merchant"),
        (SECRET.sealer("webhooks"), sealed[:20], "merchant"),
        (SECRET.sealer("webhooks"), "sealed1.", "merchant"),
        (SECRET.sealer("webhooks"), "sealed1.ÄÄ", "merchant"),
        (SECRET.sealer("webhooks"), "", "merchant"),
        (SECRET.sealer("webhooks"), "sealed1." + "A" * 20_000, "merchant"),
    ):
        with pytest.raises(SealBroken) as caught:
            sealer.open(text, context)
        assert "secret" not in str(caught.value).replace("this secret", "")
