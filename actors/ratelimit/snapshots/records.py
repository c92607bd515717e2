"""The records of a journal: who wrote it, and counters as columns.

    HEADER      the first record of every journal, once
    COUNTERS    groups of (end of the window i64 | counters u32 | lengths of keys u32 each
                | counts u64 each | the keys, one behind the other)
    RESETS      the same, with the epochs of their last resets in the place of counts
    MARK        u64: all changes until this one are before it

A count is absolute, so of two records about one counter the later one says everything. A count
beyond 64 bits is written as the largest that fits, which no limit reaches.
"""

import struct
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from sys import byteorder

from tollgate.actors.ratelimit.lending.messages import CounterColumns
from tollgate.actors.ratelimit.snapshots.frames import FRAME_BYTES_MAX, Frame

HEADER, COUNTERS, RESETS, MARK = 1, 2, 3, 4
COUNTERS_PER_FRAME_MAX = 16_384
KEY_BYTES_MAX = 1024 * 1024
"""A counter with a longer key is left out: it begins at 0 after a restart."""
KEYS_BYTES_MAX = 4 * 1024 * 1024
"""Of one record, but for its last key."""
COUNT_MAX = 2**64 - 1
ID_BYTES = 16
TAKEN_OVER_MAX = 4_096

_HEADER = struct.Struct(f"<HH{ID_BYTES}sQ")
_GROUP = struct.Struct("<qI")
_MARK = struct.Struct("<Q")
_COUNTER_BYTES = 12
assert (
    KEYS_BYTES_MAX + KEY_BYTES_MAX + COUNTERS_PER_FRAME_MAX * (_COUNTER_BYTES + _GROUP.size)
    <= FRAME_BYTES_MAX
), "a record fits into a frame"


class MalformedRecordError(ValueError):
    """A record that was written as it is, and yet is none of this format."""


@dataclass(frozen=True, slots=True)
class JournalHeader:
    """Names a journal. `id`: no other has it. `generation`: above that of every journal that was
    there when its writer started. `taken_over`: ids of the journals of other numbers of partitions
    whose counters are in here, as far as they are this partition's."""

    partition: int
    partitions: int
    id: bytes
    generation: int
    taken_over: tuple[bytes, ...] = ()

    def frame(self) -> Frame:
        """The header as a record."""
        assert len(self.taken_over) <= TAKEN_OVER_MAX, "there are fewer journals in a folder"
        own = _HEADER.pack(self.partition, self.partitions, self.id, self.generation)
        return Frame(HEADER, own + b"".join(self.taken_over))

    @classmethod
    def of(cls, frame: Frame) -> "JournalHeader":
        """The header that a record is. Raises MalformedRecordError."""
        payload = frame.payload
        ids, rest = divmod(len(payload) - _HEADER.size, ID_BYTES)
        if frame.kind != HEADER or not 0 <= ids <= TAKEN_OVER_MAX or rest:
            raise MalformedRecordError("it does not begin with a header")
        partition, partitions, own, generation = _HEADER.unpack_from(payload)
        if partition >= partitions:
            raise MalformedRecordError(f"there is no partition {partition} of {partitions}")
        starts = range(_HEADER.size, len(payload), ID_BYTES)
        taken_over = tuple(payload[start : start + ID_BYTES] for start in starts)
        return cls(partition, partitions, own, generation, taken_over)


def mark_frame(change: int) -> Frame:
    """The record that says that all changes until this one are there."""
    return Frame(MARK, _MARK.pack(change))


def mark_of(frame: Frame) -> int:
    """The change that a mark names. Raises MalformedRecordError."""
    if len(frame.payload) != _MARK.size:
        raise MalformedRecordError("a mark of an unknown length")
    (change,) = _MARK.unpack(frame.payload)
    return int(change)


def counter_frames(counters: Iterable[CounterColumns], kind: int = COUNTERS) -> Iterator[Frame]:
    """Counters as records, as few as their maxima allow; or, as RESETS, epochs."""
    groups: list[bytes] = []
    room, bytes_left = COUNTERS_PER_FRAME_MAX, KEYS_BYTES_MAX
    for end_s, keys, counts in counters:
        start = 0
        while start < len(keys):
            part = keys[start : start + room]
            ends = list(accumulate(map(len, part)))
            if ends[-1] > bytes_left:
                # As many as begin within what is left.
                part = part[: 1 + sum(end < bytes_left for end in ends[:-1])]
            groups.append(_group(end_s, part, counts[start : start + len(part)]))
            start += len(part)
            room -= len(part)
            bytes_left -= ends[len(part) - 1]
            if room <= 0 or bytes_left <= 0:
                yield Frame(kind, b"".join(groups))
                groups = []
                room, bytes_left = COUNTERS_PER_FRAME_MAX, KEYS_BYTES_MAX
    if groups:
        yield Frame(kind, b"".join(groups))


def _group(end_s: int, keys: list[bytes], counts: list[int]) -> bytes:
    if max(map(len, keys)) > KEY_BYTES_MAX:
        fitting = [each for each in zip(keys, counts, strict=True) if len(each[0]) <= KEY_BYTES_MAX]
        keys, counts = [key for key, _ in fitting], [count for _, count in fitting]
    if counts and (min(counts) < 0 or max(counts) > COUNT_MAX):
        counts = [min(max(0, count), COUNT_MAX) for count in counts]
    lengths = _little_endian(array("I", map(len, keys)))
    return b"".join(
        (_GROUP.pack(end_s, len(keys)), lengths, _little_endian(array("Q", counts)), *keys)
    )


def counters_of(frame: Frame) -> list[CounterColumns]:
    """The counters of a record. Raises MalformedRecordError."""
    payload = frame.payload
    if frame.kind not in (COUNTERS, RESETS):
        raise MalformedRecordError(f"a record of the unknown kind {frame.kind}")
    found: list[CounterColumns] = []
    start = 0
    while start < len(payload):
        if len(payload) - start < _GROUP.size:
            raise MalformedRecordError("a record ends inside a group of counters")
        end_s, size = _GROUP.unpack_from(payload, start)
        start += _GROUP.size
        keys_start = start + size * _COUNTER_BYTES
        if keys_start > len(payload):
            raise MalformedRecordError("a record has fewer counters than it says")
        lengths, counts = array("I"), array("Q")
        lengths.frombytes(payload[start : start + 4 * size])
        counts.frombytes(payload[start + 4 * size : keys_start])
        _native(lengths)
        _native(counts)
        bounds = list(accumulate(lengths, initial=keys_start))
        start = bounds[-1]
        if start > len(payload):
            raise MalformedRecordError("a record has shorter keys than it says")
        found.append((end_s, [payload[a:b] for a, b in pairwise(bounds)], counts.tolist()))
    return found


def _little_endian(numbers: "array[int]") -> bytes:
    _native(numbers)
    return numbers.tobytes()


def _native(numbers: "array[int]") -> None:
    """Turns little-endian numbers into this machine's, or the other way round."""
    if byteorder != "little":
        numbers.byteswap()
