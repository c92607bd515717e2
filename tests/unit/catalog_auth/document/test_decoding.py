"""JSON texts are read strictly, and refused with the place where they end to be one."""

import pytest

from tollgate.serve.catalog_auth.document.decoding import UnreadableError, decode


def test_a_text_is_read() -> None:
    assert decode(b' {"a": [1, 2.5, null, "\\u00e9"], "a ": 10000000000000000000000}') == {
        "a": [1, 2.5, None, "é"],
        "a ": 10**22,
    }


def test_the_last_of_repeated_members_counts() -> None:
    assert decode(b'{"a": 1, "a": 2}') == {"a": 2}


@pytest.mark.parametrize(
    ("raw", "line", "column", "reason"),
    [
        (b"", 1, 1, "expecting value"),
        (b'{"a": 1', 1, 8, "expecting ',' delimiter"),
        (b'{\n  "a": nul\n}', 2, 8, "expecting value"),
        ('{"é": "é",\n "b" 1}'.encode(), 2, 6, "expecting ':' delimiter"),
        (b"{} x", 1, 4, "extra data"),
        (b'{"a": "\n"}', 1, 8, "invalid control character at"),
        (b'\n{"a": "\xff"}', 2, 8, "the text is not UTF-8"),
        (b"[" * 100_000, 1, 1, "nested too deeply"),
        (b"[1e999]", 1, 8, "out of range"),
    ],
)
def test_a_broken_text_is_refused(raw: bytes, line: int, column: int, reason: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        decode(raw)
    error = refused.value
    assert reason in error.reason
    assert (error.line, error.column) == (line, column)
    assert str(error) == f"line {error.line}, column {error.column}: {error.reason}"


def test_more_than_rfc_8259_allows_is_refused() -> None:
    for raw in (
        b"NaN",
        b"[Infinity]",
        b'"\\ud800"',
        b'{"a": 1,}',
        b"\xef\xbb\xbf{}",
        b"9" * 5_000,
        b"01",
    ):
        with pytest.raises(UnreadableError):
            decode(raw)


def test_a_byte_order_mark_is_named() -> None:
    with pytest.raises(UnreadableError, match="byte order mark"):
        decode(b"\xef\xbb\xbf{}")
