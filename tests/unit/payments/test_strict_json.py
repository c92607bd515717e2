"""JSON from outside: what the grammar allows and we do not."""

import pytest

from tollgate.serve.payments.api.bodies.strict_json import (
    JsonError,
    canonical_json,
    depth_of,
    read_json,
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"a":1,"a":1}', "same name twice"),
        (b'{"x":{"a":1,"b":2,"a":3}}', "same name twice"),
        (b'{"a":1,"\\u0061":2}', "same name twice"),
        (b"[NaN]", "NaN"),
        (b"-Infinity", "-Infinity"),
        (b"1e999", "too large"),
        (b"9" * 401, "too large"),
        (b'"\\ud800"', "half a surrogate pair"),
        (b'{"\\udfff":1}', "half a surrogate pair"),
        (b"[" * 65 + b"]" * 65, "nested deeper than 64"),
        (b"[" * 30_000, "nested deeper than 64"),
        (b'{"a":' * 30_000, "nested deeper than 64"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"", "not JSON"),
        (b'{"a":1}x', "not JSON"),
        (b"{'a':1}", "not JSON"),
        (b'{"secret":"4100000000000000"', "line 1"),
    ],
)
def test_it_is_refused(text: bytes, why: str) -> None:
    with pytest.raises(JsonError, match=why) as caught:
        read_json(text)
    assert "4100" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_good_is_read() -> None:
    assert read_json(b' {"a":[1,2.5,"\\ud83d\\ude00",null,true]} ') == {
        "a": [1, 2.5, "😀", None, True]
    }
    assert read_json(b"[" * 64 + b"]" * 64)


@pytest.mark.parametrize(
    ("value", "depth"),
    [(1, 0), ("x", 0), ([], 1), ({}, 1), ([[[]]], 3), ({"a": {"b": 1}, "c": [[1]]}, 3)],
)
def test_depth_is_counted_through_all_containers(value: object, depth: int) -> None:
    assert depth_of(value) == depth


def test_equal_values_have_equal_texts() -> None:
    assert canonical_json({"b": 1, "a": "é"}) == canonical_json({"a": "é", "b": 1})
