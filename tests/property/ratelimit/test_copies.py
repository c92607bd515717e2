"""A copy is what it is of, whatever is lost or doubled on the way, once everything was said."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.copied_counters import CopiedSource
from tests.support.ratelimit.journals import counts_of
from tollgate.actors.ratelimit.copies.feed import CopyFeed
from tollgate.actors.ratelimit.copies.messages import CopyOrigin
from tollgate.actors.ratelimit.copies.shelf import CopyShelf
from tollgate.actors.ratelimit.lending.terms import Terms

NOW_S = 1_000_000
END_S = 1_003_600
KEYS = st.sampled_from([b"a", b"b", b"c"])
STEPS = st.one_of(
    st.tuples(KEYS, st.integers(0, 9)),
    st.sampled_from(["say", "answer is lost", "part is lost", "part is doubled", "holder is lost"]),
)


@given(st.dictionaries(KEYS, st.integers(0, 9)), st.lists(STEPS))
def test_a_copy_catches_up(counted: dict[bytes, int], steps: list[tuple[bytes, int] | str]) -> None:
    clock = ManualClock(NOW_S)
    source, shelf = CopiedSource(), CopyShelf(Terms(), clock)
    source.counts = {(END_S, key): count for key, count in counted.items()}
    feed = CopyFeed(source, CopyOrigin(0, 1, NOW_S), clock)
    feed.begin_anew()
    for step in [*steps, *["say"] * 6]:
        if isinstance(step, tuple):
            key, count = step
            source.set(END_S, key, count)
            continue
        if step == "holder is lost":
            shelf = CopyShelf(Terms(), clock)
            continue
        part = feed.part()
        if part is None or step == "part is lost":
            continue
        expected = shelf.take(part)
        if step == "part is doubled":
            expected = shelf.take(part)
        if step != "answer is lost":
            feed.be_answered(expected)
    # (the next word finds that the holder has nothing)
    clock.advance(60)
    while (part := feed.part()) is not None:
        feed.be_answered(shelf.take(part))
    assert counts_of(shelf.page(0, 0).counters) == source.counts
