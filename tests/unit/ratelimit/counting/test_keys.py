"""Different counters have different keys, however long or strange their parts."""

import pytest

from tests.support.ratelimit.engine import entries
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.counter_keys import KEY_BYTES_MAX, KeyForm
from tollgate.actors.ratelimit.rules.descriptors import Entries

# Every pair would be one counter if keys were joined as text.
DIFFERENT = [
    ("", "d", (("a_b", "c"),)),
    ("", "d", (("a", "b_c"),)),
    ("", "d", (("a", "b"), ("c", ""))),
    ("", "d", (("a", ""), ("b", "c"))),
    ("", "d", (("a", "b"),)),
    ("", "d", (("", "ab"),)),
    ("", "d", (("ab", ""),)),
    ("", "d", (("", ""),)),
    ("", "d", ()),
    ("", "d_a", (("b", "c"),)),
    ("d", "", (("a", "b"),)),
    ("p", "d", (("a", "b"),)),
    ("", "pd", (("a", "b"),)),
    ("", "d", (("a", "1:b"),)),
    ("", "d", (("a", "11:b0:"),)),
    ("", "d", (("a", "1"), ("1:b", ""))),
    ("1:d", "", (("a", "b"),)),
    ("", "1:d", (("a", "b"),)),
    ("", "d", (("a", "x" * 254),)),
    ("", "d", (("a", "x" * 255),)),
    ("", "d", (("a", "x" * 256),)),
    ("", "d", (("a", "\ud800"),)),
    ("", "d", (("a", "\ud800\udc00"),)),
    ("", "d", (("a", "\U00010000"),)),
    ("", "d", (("a", "é"),)),
]


def counter_key(prefix: str, domain: str, pairs: Entries, unit: Unit) -> bytes:
    """The key of these entries' counter: the same whether values are known before or filled in."""
    filled_in = KeyForm(prefix, domain, [(key, None) for key, _ in pairs], unit).key(pairs)
    assert KeyForm(prefix, domain, pairs, unit).key(()) == filled_in
    for known in range(len(pairs)):
        mixed = [(k, v if i == known else None) for i, (k, v) in enumerate(pairs)]
        assert KeyForm(prefix, domain, mixed, unit).key(pairs) == filled_in
    return filled_in


def test_no_two_counters_share_a_key() -> None:
    keys = {
        counter_key(prefix, domain, pairs, unit)
        for prefix, domain, pairs in DIFFERENT
        for unit in Unit
    }
    assert len(keys) == len(DIFFERENT) * len(Unit)


def test_a_key_is_the_same_every_time() -> None:
    key = counter_key("p", "d", entries("k=v"), Unit.HOUR)
    assert key == b"3|1:p1:d1:k1:v"


@pytest.mark.parametrize("size", [KEY_BYTES_MAX - 8, KEY_BYTES_MAX - 7, 254, 255, 4_096])
def test_a_key_is_bounded(size: int) -> None:
    pairs = (("k", "x" * size),)
    key = counter_key("", "d", pairs, Unit.DAY)
    assert len(key) <= KEY_BYTES_MAX
    assert key == counter_key("", "d", pairs, Unit.DAY)
    assert key != counter_key("", "d", (("k", "x" * (size - 1) + "y"),), Unit.DAY)
