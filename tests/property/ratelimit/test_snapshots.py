"""Journals of counters: whatever becomes of the bytes, what is read was written, in that order."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tests.support.ratelimit.journals import Counts, columns, counts_in, file_of, read_back
from tollgate.actors.ratelimit.lending.messages import CounterColumns
from tollgate.actors.ratelimit.snapshots.frames import HEAD_BYTES, MAGIC, Ending, Frame
from tollgate.actors.ratelimit.snapshots.records import (
    COUNT_MAX,
    COUNTERS,
    ID_BYTES,
    JournalHeader,
    MalformedRecordError,
    counter_frames,
    counters_of,
)

KEYS = st.binary(max_size=40)
ENDS_S = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(0, COUNT_MAX)
COUNTERS_OF_ONE_RECORD = st.dictionaries(st.tuples(ENDS_S, KEYS), COUNTS, max_size=12)
FRAMES = st.lists(
    st.builds(Frame, kind=st.integers(0, 255), payload=st.binary(max_size=60)), max_size=6
)


@given(st.lists(COUNTERS_OF_ONE_RECORD, max_size=6))
def test_what_was_written_is_read_and_the_later_count_wins(records: list[Counts]) -> None:
    frames = [frame for record in records for frame in counter_frames(columns(record))]
    found, ending, end = read_back(data := file_of(frames))
    assert (found, ending, end) == (frames, Ending.WHOLE, len(data))
    expected: Counts = {}
    for record in records:
        expected |= record
    assert counts_in(found) == expected


@given(FRAMES, st.data())
def test_a_file_that_was_cut_holds_the_first_frames(
    frames: list[Frame], draw: st.DataObject
) -> None:
    data = file_of(frames)
    cut = draw.draw(st.integers(0, len(data)))
    found, ending, end = read_back(data[:cut])
    assert found == frames[: len(found)]
    ends = [len(file_of(frames[:number])) for number in range(len(frames) + 1)]
    assert len(found) == sum(each <= cut for each in ends[1:])
    assert ending is (Ending.WHOLE if cut in ends else Ending.TORN)
    assert end == (0 if cut < len(MAGIC) else ends[len(found)])


@given(FRAMES, st.integers(1, 200), st.data())
def test_what_the_power_cut_left_as_zeros_is_torn(
    frames: list[Frame], zeros: int, draw: st.DataObject
) -> None:
    data = file_of(frames)
    cut = draw.draw(st.integers(len(MAGIC), len(data)))
    found, ending, _ = read_back(data[:cut] + bytes(zeros))
    assert found == frames[: len(found)]
    if cut == len(data):
        assert (found, ending) == (frames, Ending.TORN)


@given(FRAMES, st.binary(min_size=1, max_size=40))
def test_nothing_behind_the_last_frame_is_believed(frames: list[Frame], rest: bytes) -> None:
    found, ending, end = read_back((data := file_of(frames)) + rest)
    assert (found, end) == (frames, len(data))
    assert ending in (Ending.TORN, Ending.DAMAGED)


@given(FRAMES, st.data())
def test_any_bit_that_was_flipped_is_noticed(frames: list[Frame], draw: st.DataObject) -> None:
    data = bytearray(file_of(frames))
    bit = draw.draw(st.integers(0, 8 * len(data) - 1))
    data[bit // 8] ^= 1 << bit % 8
    found, ending, end = read_back(bytes(data))
    assert ending is not Ending.WHOLE
    assert end <= bit // 8
    assert found == frames[: len(found)]
    ends = [len(file_of(frames[:number])) for number in range(len(frames) + 1)]
    assert len(found) == sum(each <= bit // 8 for each in ends[1:])


@given(st.lists(st.binary(min_size=1, max_size=30), min_size=2, max_size=6, unique=True), st.data())
def test_a_frame_that_was_taken_out_or_moved_is_noticed(
    payloads: list[bytes], draw: st.DataObject
) -> None:
    frames = [Frame(COUNTERS, payload) for payload in payloads]
    data = file_of(frames)
    starts = [len(file_of(frames[:number])) for number in range(len(frames) + 1)]
    pieces = [data[a:b] for a, b in itertools.pairwise(starts)]
    number = draw.draw(st.integers(0, len(pieces) - 2))
    taken_out = pieces[:number] + pieces[number + 1 :]
    swapped = [*taken_out[: number + 1], pieces[number], *taken_out[number + 1 :]]
    for changed in (taken_out, swapped):
        found, ending, _ = read_back(MAGIC + b"".join(changed))
        assert found == frames[:number]
        assert ending in (Ending.DAMAGED, Ending.TORN)
        assert ending is Ending.DAMAGED or number == len(changed) - 1


@given(st.binary(max_size=300))
def test_any_bytes_are_counters_or_none_of_this_format(payload: bytes) -> None:
    try:
        found = counters_of(Frame(COUNTERS, payload))
    except MalformedRecordError:
        return
    assert payload == b"".join(map(payload_of, found))


def payload_of(group: CounterColumns) -> bytes:
    end_s, keys, counts = group
    sizes = b"".join(len(key).to_bytes(4, "little") for key in keys)
    values = b"".join(count.to_bytes(8, "little") for count in counts)
    head = end_s.to_bytes(8, "little", signed=True) + len(keys).to_bytes(4, "little")
    return head + sizes + values + b"".join(keys)


@given(
    st.integers(1, 1024).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))),
    st.binary(min_size=ID_BYTES, max_size=ID_BYTES),
    st.integers(0, 2**64 - 1),
    st.lists(st.binary(min_size=ID_BYTES, max_size=ID_BYTES), max_size=4),
    st.data(),
)
def test_headers_come_back(
    place: tuple[int, int], own: bytes, generation: int, ids: list[bytes], draw: st.DataObject
) -> None:
    header = JournalHeader(*place, own, generation, tuple(ids))
    frame = header.frame()
    assert JournalHeader.of(frame) == header
    cut = draw.draw(st.integers(0, len(frame.payload) - 1))
    try:
        shorter = JournalHeader.of(Frame(frame.kind, frame.payload[:cut]))
    except MalformedRecordError:
        return
    assert shorter.taken_over == header.taken_over[: len(shorter.taken_over)]


def test_a_frame_costs_few_bytes() -> None:
    assert len(file_of([Frame(COUNTERS, b"")])) == len(MAGIC) + HEAD_BYTES == 33
