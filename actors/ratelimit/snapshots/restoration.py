"""Reads back what partitions have written: the counters that belong to one partition now.

A key belongs to the partition that its hash leaves as remainder, so only journals that may hold
such keys are read, the oldest first: of two counts the later one says everything. What cannot be
read costs the counters in it, and is told in one line that says what to do; nothing behind the
first byte that is not as it was written is believed.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import compress, islice
from math import inf

from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ratelimit.lending.messages import CounterColumns, CounterName
from tollgate.actors.ratelimit.snapshots.frames import Ending, Frame, FrameReader
from tollgate.actors.ratelimit.snapshots.journal_folder import JournalFolder, JournalName
from tollgate.actors.ratelimit.snapshots.records import (
    MARK,
    RESETS,
    JournalHeader,
    MalformedRecordError,
    counters_of,
    mark_of,
)


@dataclass(slots=True)
class JournalLeft:
    """What a process has left behind in its journal, beside counters. `id`: of the journal.
    `mark`: all changes until this one are there; None: that is not known. `is_behind`: more was
    written after that. `resets`: the epoch of the last one of each counter."""

    id: bytes = b""
    mark: int | None = None
    is_behind: bool = False
    resets: dict[CounterName, int] = field(default_factory=dict)

    def note(self, frame: Frame) -> None:
        """Take a record that holds no counters."""
        if frame.kind == MARK:
            self.mark, self.is_behind = mark_of(frame), False
        for end_s, keys, epochs in counters_of(frame) if frame.kind == RESETS else ():
            self.resets.update(zip(((end_s, key) for key in keys), epochs, strict=True))


class Restoration:
    """The journals in a folder, read for one partition. `findings`: a line about each that could
    not be read as it should; complete when the counters have been read to their end, as is `left`:
    what the journal in this one's own place says."""

    def __init__(self, folder: JournalFolder, own: JournalName) -> None:
        self._folder = folder
        self._own = own
        self.findings: list[str] = []
        self.left = JournalLeft()
        self._headers: dict[JournalName, JournalHeader] = {}
        for name in self._names():
            self._look_at(name)

    @property
    def generation(self) -> int:
        """The highest of all journals; 0 when there are none."""
        return max((header.generation for header in self._headers.values()), default=0)

    @property
    def taken_over(self) -> tuple[bytes, ...]:
        """The ids of the journals of other numbers of partitions that are read for this one."""
        return tuple(
            header.id
            for name, header in self._headers.items()
            if name.partitions != self._own.partitions and name.may_share_keys_with(self._own)
        )

    def counters(self, written_after_s: float = -inf) -> Iterator[CounterColumns]:
        """The partition's counters, in the order in which they were written. Journals that nobody
        has written to after a time (seconds of the epoch) are left out: of an earlier stay."""
        by_age = sorted(self._headers, key=lambda name: self._headers[name].generation)
        for name in by_age:
            if name.may_share_keys_with(self._own) and self._is_later(name, written_after_s):
                yield from self._of(name)

    def _is_later(self, name: JournalName, time_s: float) -> bool:
        try:
            return time_s == -inf or self._folder.written_s(name) > time_s
        except OSError:
            return True  # (whoever reads it tells)

    def _names(self) -> list[JournalName]:
        try:
            return self._folder.names()
        except OSError as error:
            self.findings.append(
                f"{self._folder.path} cannot be read, so counters begin at 0: {error.strerror}"
            )
            return []

    def _look_at(self, name: JournalName) -> None:
        """Note the header of a journal, or take it out of force when it has none."""
        place = self._folder.place(name)
        try:
            header = self._folder.header(name)
            if header is not None and JournalName(header.partition, header.partitions) == name:
                self._headers[name] = header
            elif place.exists():
                aside = self._folder.set_aside(name)
                self.findings.append(
                    f"{place} is no counter journal of this version: its counters begin at 0. It "
                    f"is {aside.name} now; give it its name back for the version that wrote it, or "
                    "delete it"
                )
        except OSError as error:
            self._tell_unreadable(name, error)

    def _of(self, name: JournalName) -> Iterator[CounterColumns]:
        place = self._folder.place(name)
        try:
            with place.open("rb") as file:
                frames = FrameReader(file)
                try:
                    left = JournalLeft(self._headers[name].id)
                    if name == self._own:
                        self.left = left
                    for frame in islice(frames, 1, None):  # (the header was read before)
                        if frame.kind in (RESETS, MARK):
                            left.note(frame)
                            continue
                        left.is_behind = True
                        for columns in counters_of(frame):
                            yield self._own_part(name, columns)
                except MalformedRecordError as error:
                    self._tell_damage(name, f"{error}, before byte {frames.end}")
                    return
                size = file.seek(0, 2)
        except FileNotFoundError:
            return  # (every partition has it by now, and the last one has removed it)
        except OSError as error:
            self._tell_unreadable(name, error)
            return
        if frames.ending is Ending.TORN:
            self.findings.append(
                f"the last {size - frames.end} bytes of {place} were never written to their end, "
                "as after a crash: hits of about its last second count as never made"
            )
        elif frames.ending is not Ending.WHOLE:
            self._tell_damage(name, f"from byte {frames.end} of {size} on")

    def _own_part(self, name: JournalName, columns: CounterColumns) -> CounterColumns:
        """What belongs to this partition of a journal's counters."""
        own = self._own
        if name.partitions == own.partitions or own.partitions == 1:
            return columns
        end_s, keys, counts = columns
        chosen = [stable_hash(key) % own.partitions == own.partition for key in keys]
        return end_s, list(compress(keys, chosen)), list(compress(counts, chosen))

    def _tell_damage(self, name: JournalName, where: str) -> None:
        place = self._folder.place(name)
        kept = ""
        with suppress(OSError):
            kept = f" It is kept as {self._folder.keep_copy(name).name}."
        self.findings.append(
            f"{place} is damaged {where}: what was counted after that begins again at an older "
            f"count, or at 0.{kept} Have a look at the disk"
        )

    def _tell_unreadable(self, name: JournalName, error: OSError) -> None:
        """A journal that is not given out makes room for one that is."""
        place = self._folder.place(name)
        kept = ""
        with suppress(OSError):
            kept = f" It is {self._folder.set_aside(name).name} now."
        self.findings.append(
            f"{place} cannot be read, so its counters begin at 0: {error.strerror}.{kept} Give "
            "everything there to the user that runs Tollgate (chown)"
        )
