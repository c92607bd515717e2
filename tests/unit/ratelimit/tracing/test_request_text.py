"""A request as text for people: whole when it is small, and bounded whatever it is."""

import pytest

from tollgate.serve.ratelimit.codec.messages import RequestMessage
from tollgate.serve.ratelimit.codec.request_text import head_of, request_text

CHARS = 200


def message(*values: str, domain: str = "d", hits: int = 0) -> bytes:
    made = RequestMessage(domain=domain, hits_addend=hits)
    for value in values:
        made.descriptors.add().entries.add(key="k", value=value)
    return bytes(made.SerializeToString())


def shown(payload: bytes, head_bytes: int = 100) -> tuple[str, str]:
    return request_text(head_of(payload, head_bytes), len(payload), CHARS)


def test_a_small_request_is_shown_whole() -> None:
    domain, text = shown(message("v", hits=2))
    assert domain == "d"
    assert text == 'domain: "d" descriptors { entries { key: "k" value: "v" } } hits_addend: 2'


def test_a_large_request_is_shown_up_to_a_bound() -> None:
    payload = message(*(["v" * 20] * 50))
    domain, text = shown(payload)
    assert domain == "d"
    assert text.startswith('domain: "d" descriptors { entries { key: "k" value: "vvv')
    assert text.endswith(f" … ({len(payload)} bytes)")
    assert len(text) <= CHARS
    assert len(head_of(payload, 100)) <= 100


def test_a_large_field_is_left_out() -> None:
    payload = message("v" * 1_000)
    assert shown(payload) == ("d", f'domain: "d" … ({len(payload)} bytes)')
    payload = message("v", domain="d" * 1_000)
    assert shown(payload) == ("", f" … ({len(payload)} bytes)")


def test_text_that_grows_is_cut() -> None:
    payload = message("\x01" * 90)
    _, text = shown(payload, 200)
    assert len(text) == CHARS
    assert text.endswith(f"({len(payload)} bytes)")
    assert text.isprintable()


def test_surrogates_and_other_letters_are_text() -> None:
    _, text = shown(message("ü€\U0001f600"))
    text.encode()


@pytest.mark.parametrize(
    "payload",
    [
        b"\xff",
        b"\x0a",
        b"\x0a\x05abc",
        b"x" * 1_000,
        b"\xff" * 1_000,
        b"\x0a" + b"\xff" * 1_000,
        b"\x0d" * 1_000,
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + b"x" * 1_000,
    ],
)
def test_what_is_no_request_is_said_to_be_none(payload: bytes) -> None:
    domain, text = shown(payload)
    assert domain == ""
    assert f"{len(payload)} bytes" in text
    assert len(text) <= CHARS
