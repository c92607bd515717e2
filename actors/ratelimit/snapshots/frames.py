"""Frames: records in a row, each of which shows whether it is what was written, and where.

    file    MAGIC frame*
    frame   payload length u32 | kind u8 | check of the payload u32 | check of these 9 bytes u32
            payload

Numbers are little-endian. A check is a CRC-32 that goes on from the check of the payload before, so
a frame counts only behind the one it was written behind: neither left-overs of the disk nor frames
that were moved or taken out pass. Reading ends at the first byte that is not as it was written:

    whole      after the last frame
    torn       inside the last frame, or where only zeros follow: a write that was never finished
    damaged    before the last frame: the disk, or somebody, has changed it
    foreign    it does not begin with MAGIC
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO
from zlib import crc32

MAGIC = b"tollgate counters 1\n"
"""With the version of the format; it changes whenever older versions could not read it."""
FRAME_BYTES_MAX = 8 * 1024 * 1024
_HEAD = struct.Struct("<IBI")
_CHECK = struct.Struct("<I")
HEAD_BYTES = _HEAD.size + _CHECK.size
_CHUNK_BYTES = 1024 * 1024


class Ending(Enum):
    """The reason why there are no more frames. See above."""

    WHOLE = "whole"
    TORN = "torn"
    DAMAGED = "damaged"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Frame:
    """One record. `kind` says what its payload is."""

    kind: int
    payload: bytes


class FrameWriter:
    """Turns records into bytes for the end of one file, from its beginning on."""

    def __init__(self) -> None:
        self._chain = 0

    def encoded(self, frame: Frame) -> bytes:
        """The frame's bytes, behind those of the one before."""
        payload = frame.payload
        assert len(payload) <= FRAME_BYTES_MAX, "whoever makes a frame keeps to its maximum"
        chain = crc32(payload, self._chain)
        head = _HEAD.pack(len(payload), frame.kind, chain)
        check = _CHECK.pack(crc32(head, self._chain))
        self._chain = chain
        return b"".join((head, check, payload))


class FrameReader:
    """Reads a file's frames. `ending` and `end` (bytes that are as they were written) are known
    when there are no more."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._chain = 0
        self.end = 0
        self.ending: Ending | None = None

    def __iter__(self) -> Iterator[Frame]:
        magic = self._file.read(len(MAGIC))
        if magic != MAGIC:
            self.ending = Ending.TORN if MAGIC.startswith(magic) else Ending.FOREIGN
            return
        self.end = len(MAGIC)
        while (frame := self._next()) is not None:
            yield frame

    def _next(self) -> Frame | None:
        head = self._file.read(HEAD_BYTES)
        if len(head) < HEAD_BYTES:
            self.ending = Ending.TORN if head else Ending.WHOLE
            return None
        length, kind, chain = _HEAD.unpack_from(head)
        (check,) = _CHECK.unpack_from(head, _HEAD.size)
        if check != crc32(head[: _HEAD.size], self._chain) or length > FRAME_BYTES_MAX:
            is_torn = not any(head) and self._has_zeros_only()
            self.ending = Ending.TORN if is_torn else Ending.DAMAGED
            return None
        payload = self._file.read(length)
        if len(payload) < length or chain != crc32(payload, self._chain):
            is_torn = len(payload) < length or self._has_zeros_only()
            self.ending = Ending.TORN if is_torn else Ending.DAMAGED
            return None
        self._chain = chain
        self.end += HEAD_BYTES + length
        return Frame(kind, payload)

    def _has_zeros_only(self) -> bool:
        """Whether nothing but zeros follows, or nothing at all."""
        while chunk := self._file.read(_CHUNK_BYTES):
            if chunk.count(0) < len(chunk):
                return False
        return True
