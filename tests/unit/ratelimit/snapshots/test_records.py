"""Records of a journal: their maxima, and what is none."""

import pytest

from tests.support.ratelimit.journals import columns, counts_in
from tollgate.actors.ratelimit.snapshots.frames import FRAME_BYTES_MAX, Frame
from tollgate.actors.ratelimit.snapshots.journal_folder import JournalName
from tollgate.actors.ratelimit.snapshots.records import (
    COUNT_MAX,
    COUNTERS,
    COUNTERS_PER_FRAME_MAX,
    HEADER,
    KEY_BYTES_MAX,
    KEYS_BYTES_MAX,
    JournalHeader,
    MalformedRecordError,
    counter_frames,
    counters_of,
)


def test_many_counters_are_several_records() -> None:
    counts = {(number % 2, b"%d" % number): number for number in range(COUNTERS_PER_FRAME_MAX + 1)}
    frames = list(counter_frames(columns(counts)))
    assert len(frames) == 2
    assert counts_in(frames) == counts


def test_a_record_ends_with_the_key_that_fills_it() -> None:
    size = KEYS_BYTES_MAX // 4
    counts = {(7, bytes([number]) * size): number for number in range(6)}
    frames = list(counter_frames(columns(counts)))
    assert [len(counters_of(frame)[0][1]) for frame in frames] == [4, 2]
    assert counts_in(frames) == counts
    assert max(len(frame.payload) for frame in frames) <= FRAME_BYTES_MAX


def test_a_key_that_is_too_long_is_left_out() -> None:
    counts = {(7, b"k" * (KEY_BYTES_MAX + 1)): 1, (7, b"k" * KEY_BYTES_MAX): 2, (7, b"a"): 3}
    found = counts_in(list(counter_frames(columns(counts))))
    assert found == {(7, b"k" * KEY_BYTES_MAX): 2, (7, b"a"): 3}


@pytest.mark.parametrize(
    ("count", "written"), [(-5, 0), (2**64, COUNT_MAX), (2**64 - 1, COUNT_MAX)]
)
def test_a_count_is_cut_to_what_fits(count: int, written: int) -> None:
    assert counts_in(list(counter_frames([(7, [b"a"], [count])]))) == {(7, b"a"): written}


def test_no_counters_are_no_record() -> None:
    assert list(counter_frames([])) == []
    assert list(counter_frames([(7, [], [])])) == []


def test_other_kinds_are_no_counters() -> None:
    with pytest.raises(MalformedRecordError, match="unknown kind 9"):
        counters_of(Frame(9, b""))


@pytest.mark.parametrize(
    "payload",
    [b"short", (7).to_bytes(8, "little") + (1).to_bytes(4, "little")],
)
def test_half_a_group_is_refused(payload: bytes) -> None:
    with pytest.raises(MalformedRecordError):
        counters_of(Frame(COUNTERS, payload))


def test_keys_that_go_beyond_the_record_are_refused() -> None:
    (frame,) = counter_frames([(7, [b"abc"], [1])])
    with pytest.raises(MalformedRecordError, match="shorter keys"):
        counters_of(Frame(COUNTERS, frame.payload[:-1]))


@pytest.mark.parametrize(
    "frame",
    [
        Frame(COUNTERS, b""),
        Frame(HEADER, b"short"),
        Frame(HEADER, JournalHeader(1, 2, bytes(16), 1).frame().payload + b"more"),
        Frame(HEADER, JournalHeader(2, 2, bytes(16), 1).frame().payload),
    ],
)
def test_other_records_are_no_header(frame: Frame) -> None:
    with pytest.raises(MalformedRecordError):
        JournalHeader.of(frame)


@pytest.mark.parametrize(
    ("one", "other", "does"),
    [
        ((0, 2), (0, 2), True),
        ((0, 2), (1, 2), False),
        ((0, 2), (2, 3), True),
        ((1, 2), (3, 4), True),
        ((1, 2), (2, 4), False),
        ((0, 1), (5, 7), True),
        ((1, 6), (3, 4), True),
        ((1, 6), (2, 4), False),
    ],
)
def test_partitions_may_share_keys(
    one: tuple[int, int], other: tuple[int, int], does: bool
) -> None:
    assert JournalName(*one).may_share_keys_with(JournalName(*other)) is does
    assert JournalName(*other).may_share_keys_with(JournalName(*one)) is does
    remainders = range(one[1] * other[1])
    shared = [n for n in remainders if n % one[1] == one[0] and n % other[1] == other[0]]
    assert bool(shared) is does
