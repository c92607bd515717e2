"""The number of values in a JSON text is never guessed too low."""

import json

import pytest

from tollgate.serve.net import json_values
from tollgate.serve.net.json_values import excess, holds_more_values


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (1, 1),
        ("a,[{b", 1),
        ('"', 1),
        ("\\", 1),
        (['\\"', "\\\\,", "x"], 4),
        ([], 2),
        ([[], {}], 5),
        ({"a,": 1, "b[": [1, 2, {"c\\": None}]}, 7),
    ],
)
def test_values_are_counted_outside_of_strings(value: object, count: int) -> None:
    text = json.dumps(value).encode()
    assert excess(text, count, len(text)) is None
    assert excess(text, count - 1, len(text)) == f"it holds more than {count - 1} values"
    assert holds_more_values(text, count) is False
    assert holds_more_values(text + b"   ", count - 1) is (len(text) + 3 > count - 1)


@pytest.mark.parametrize("size", range(1, 12))
def test_however_it_is_cut_the_count_is_the_same(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = ['\\"[', "\\\\", "\\" * 7 + ",", {'a,"': [1, "{"]}, "", [""] * 9]
    text = json.dumps(value).encode()
    count, longest = 19, len(json.dumps("\\" * 7 + ",")) - 2
    monkeypatch.setattr(json_values, "PIECE_BYTES", size)
    assert excess(text, 100, longest) is None
    assert excess(text, 100, longest - 1) == f"it holds a string of more than {longest - 1} bytes"
    assert excess(text, count, longest) is None
    assert excess(text, count - 1, longest) == f"it holds more than {count - 1} values"


def test_what_is_no_json_is_counted_somehow() -> None:
    assert holds_more_values(b'"' * 1_000 + b"," * 1_000, 500)
