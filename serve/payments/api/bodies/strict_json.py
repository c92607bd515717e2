"""JSON from outside, read strictly (part A, Bodies in; part G, Input).

Beyond the grammar are refused: text that is not UTF-8, a name twice in an object, NaN and numbers
that no float holds, half a surrogate pair (no database takes it), and nesting without an end.
"""

import json
from collections.abc import Iterable
from typing import NoReturn, cast

from tollgate.serve.net.json_values import holds_more_values

JSON_DEPTH_MAX = 64
# More than the largest `custom` can hold, in which a value takes two bytes at least.
VALUES_MAX = 32 * 1024
DIGITS_MAX = 400  # (Python would refuse from 4,300 on, in words that help nobody)


class JsonError(ValueError):
    """A text that is not acceptable JSON; `str()` says why, without quoting it."""


def read_json(text: bytes) -> object:
    """The value of a text. Raises JsonError."""
    if holds_more_values(text, VALUES_MAX):
        raise JsonError(f"holds more than {VALUES_MAX} values")
    try:
        value = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_float,
            parse_int=_integer,
        )
    except UnicodeDecodeError as error:
        raise JsonError(f"is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise JsonError(f"is not JSON: {error.msg} (line {error.lineno})") from None
    except RecursionError:
        raise _too_deep() from None
    if depth_of(value) > JSON_DEPTH_MAX:
        raise _too_deep()
    if b"\\u" in text:
        _refuse_half_pairs(value)
    return value


def canonical_json(value: object) -> str:
    """The shortest text of a value, names in order: equal values have equal texts."""
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )


def depth_of(value: object) -> int:
    """The number of objects and arrays inside one another; 0 for a scalar."""
    depth, level = 0, _containers([value])
    while level:
        depth += 1
        level = [child for each in level for child in _containers(_children(each))]
    return depth


def _containers(values: Iterable[object]) -> list[object]:
    return [each for each in values if isinstance(each, dict | list)]


def _children(container: object) -> Iterable[object]:
    return container.values() if isinstance(container, dict) else cast(list[object], container)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise JsonError("has the same name twice in an object")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"holds {name}, which is no number of JSON")


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise JsonError("holds a number that is too large")
    return number


def _integer(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise JsonError("holds a number that is too large")
    return int(text)


def _refuse_half_pairs(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise JsonError("holds half a surrogate pair") from None


def _too_deep() -> JsonError:
    return JsonError(f"is nested deeper than {JSON_DEPTH_MAX} levels")
