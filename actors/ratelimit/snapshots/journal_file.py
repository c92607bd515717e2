"""A journal on disk that is being written: a draft until it is put in the place of the one before.

    begin --append, append, …--> draft --put_in_place--> the journal --append, sync, …--> closed

What was synced is on the disk. A journal to which something could not be appended ends there: what
follows would not be read.
"""

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tollgate.actors.kernel.atomic_file import PRIVATE, make_durable
from tollgate.actors.ratelimit.snapshots.frames import MAGIC, Frame, FrameWriter
from tollgate.actors.ratelimit.snapshots.records import JournalHeader

DRAFT_SUFFIX = ".draft"


class JournalFile:
    """One journal and its one writer. All methods but `close` raise OSError."""

    def __init__(self, path: Path, header: JournalHeader) -> None:
        self._path = path
        self._draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}{DRAFT_SUFFIX}")
        self._frames = FrameWriter()
        beginning = MAGIC + self._frames.encoded(header.frame())
        self._file = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        self._is_draft = True
        self.size = 0
        """The bytes that were written."""
        try:
            self._write(beginning)
        except OSError:
            self.close()  # (nobody else has it)
            raise

    def append(self, frames: Iterable[Frame]) -> None:
        """Write records behind those that are there."""
        for frame in frames:
            self._write(self._frames.encoded(frame))

    def sync(self) -> None:
        """Wait until the disk has all of it."""
        os.fdatasync(self._file)

    def put_in_place(self) -> None:
        """Make the draft the journal, in the place of the one before."""
        os.fsync(self._file)
        self._draft.replace(self._path)
        self._is_draft = False
        make_durable(self._path.parent)

    def close(self) -> None:
        """Let go of it, whatever the disk says. A draft that was not put in its place is removed,
        by the next writer if not now."""
        with suppress(OSError):  # (the descriptor is gone even then)
            os.close(self._file)
        if self._is_draft:
            with suppress(OSError):
                self._draft.unlink(missing_ok=True)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            written = os.write(self._file, left)
            self.size += written
            left = left[written:]
