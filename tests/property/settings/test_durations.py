"""Durations: whatever is written in Go's units is read back exactly."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tollgate.serve.settings.values import BadValueError, duration_ns

UNIT_NS = {
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
amounts = st.tuples(st.sampled_from(sorted(UNIT_NS)), st.integers(0, 100_000))


def written(nanoseconds: int) -> str:
    """The duration in the largest units first, without the empty ones."""
    text, rest = "", nanoseconds
    for unit, length in UNIT_NS.items():
        count, rest = divmod(rest, length)
        text += f"{count}{unit}" if count else ""
    return text or "0"


@given(st.integers(0, 2**63 - 1))
def test_a_written_duration_is_read_back(nanoseconds: int) -> None:
    assert duration_ns(written(nanoseconds)) == nanoseconds
    assert duration_ns(f"-{written(nanoseconds)}") == -nanoseconds


@given(st.lists(amounts, min_size=1, max_size=8))
def test_parts_add_up_in_any_order(parts: list[tuple[str, int]]) -> None:
    text = "".join(f"{amount}{unit}" for unit, amount in parts)
    assert duration_ns(text) == sum(amount * UNIT_NS[unit] for unit, amount in parts)


@given(st.integers(0, 10**9), st.integers(0, 10**9 - 1))
def test_plain_seconds_are_seconds(seconds: int, fraction_ns: int) -> None:
    text = f"{seconds}.{fraction_ns:09}"
    assert duration_ns(text) == duration_ns(f"{text}s") == seconds * 10**9 + fraction_ns


@given(st.text("0123456789.+-hmsun ", max_size=12))
def test_any_other_text_is_refused(text: str) -> None:
    amount = r"(\d+(\.\d*)?|\.\d+)"
    assume(not re.fullmatch(rf"[+-]?({amount}|({amount}(h|m|s|ms|us|ns))+)", text))
    with pytest.raises(BadValueError, match="is not a duration"):
        duration_ns(text)
