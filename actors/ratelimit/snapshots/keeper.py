"""Keeps a partition's counters on disk: says what is written when.

    start -> restore: what the journals say -> base -> deltas, one at each call
          a journal that has outgrown its base twofold -> a new base, in its place
          a write that fails -> a new base as soon as the disk takes one
          the end -> a last base

A *base* is all counters, a *delta* those that have changed since. Counts are absolute, so a journal
is right at every moment: while a new base is written, deltas go into both journals. Deltas leave
out windows that end soon, by the monotonic clock: the time of day may be wrong for a while. Behind
a delta is a mark, which says how much is known there: so is a copy told from an older journal.
"""

import logging
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.lending.messages import CounterColumns, Progress
from tollgate.actors.ratelimit.snapshots.frames import Frame
from tollgate.actors.ratelimit.snapshots.journal_file import JournalFile
from tollgate.actors.ratelimit.snapshots.journal_folder import JournalFolder, JournalName
from tollgate.actors.ratelimit.snapshots.records import (
    ID_BYTES,
    RESETS,
    JournalHeader,
    counter_frames,
    mark_frame,
)
from tollgate.actors.ratelimit.snapshots.restoration import JournalLeft, Restoration
from tollgate.actors.ratelimit.snapshots.roster_file import RosterFile

LOG = logging.getLogger("tollgate.ratelimit")
LIFE_LEFT_MIN_S = 10
"""Counters of windows that end sooner are not worth a write."""
CHANGED_AT_ONCE = 1_024
PAGES_MAX = 4_096
"""Of one delta: what comes faster than it is written waits for the next one."""
DELTAS_BYTES_MIN = 4 * 1024 * 1024
"""A small base waits for so many bytes of deltas before it is written anew."""
RETRY_EVERY_S = 5.0
TOLD_EVERY_S = 60.0


class CounterSource(Protocol):
    """A partition's counters. Called in the keeper's thread, while the partition goes on."""

    def changed(self, counters_max: int) -> list[CounterColumns]:
        """Up to so many counters that have changed since they were handed out here."""

    def everything(self) -> Iterator[list[CounterColumns]]:
        """All counters, some at a time."""

    def progress(self, after_reset: int) -> Progress:
        """How far `changed` has got, with the resets after that one."""


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """How the keeping goes. `age_s`: since everything that had changed was on disk; `failures`:
    writes that did not succeed."""

    age_s: float
    bytes: int
    failures: int


class SupersededError(Exception):
    """Another process keeps these counters."""


class SnapshotKeeper:
    """The journal of one partition. `restored` first, then `write` again and again, then `finish`,
    in one thread; `state` in any."""

    def __init__(
        self, folder: JournalFolder, name: JournalName, interval_s: float, clock: Clock
    ) -> None:
        self._folder = folder
        self._name = name
        self.interval_s = interval_s
        self._clock = clock
        self.id = secrets.token_bytes(ID_BYTES)
        """Of the journal that this keeper writes."""
        self.left = JournalLeft()
        """What the journal in its place said, once `restored` has come to its end."""
        self._reset = 0  # the last one that is in the journal in force
        self._header: JournalHeader | None = None
        self._journal: JournalFile | None = None
        self._base_bytes = 0
        self._ends_at_s: dict[int, float] = {}
        """When the windows that were seen end, by the monotonic clock."""
        self._is_superseded = False
        self._failures = 0
        self._retry_at_s = -inf
        self._told_at_s = -inf
        self._written_at_s = clock.monotonic_s()

    @property
    def state(self) -> SnapshotState:
        journal = self._journal
        age_s = max(0.0, self._clock.monotonic_s() - self._written_at_s)
        return SnapshotState(age_s, 0 if journal is None else journal.size, self._failures)

    def restored(self, written_after_s: float = -inf) -> Iterator[CounterColumns]:
        """The counters of before, in the order in which they were written; logs what is lost.
        `written_after_s`: as there."""
        restoration = Restoration(self._folder, self._name)
        self._header = self._new_header(restoration)
        yield from restoration.counters(written_after_s)
        self.left = restoration.left
        for finding in restoration.findings:
            LOG.warning("%s", finding)

    def roster(self, incarnation: int) -> RosterFile:
        """The roster beside the journal, for an incarnation of the partition."""
        return self._folder.roster(self._name, incarnation)

    def write(self, source: CounterSource) -> None:
        """Write what has changed. What fails is told and counted, and tried again."""
        self._attempt(source)

    def finish(self, source: CounterSource) -> bool:
        """Write all counters, whenever their windows end, and let go of the journal. Whether they
        are on disk."""
        self._retry_at_s = self._told_at_s = -inf
        is_on_disk = self._attempt(source, is_last=True)
        self._close()
        return is_on_disk

    def _new_header(self, restoration: Restoration) -> JournalHeader:
        name, taken_over = self._name, restoration.taken_over
        generation = restoration.generation + 1
        return JournalHeader(name.partition, name.partitions, self.id, generation, taken_over)

    def _attempt(self, source: CounterSource, *, is_last: bool = False) -> bool:
        assert self._header is not None, "what was there before is read first"
        now_s = self._clock.monotonic_s()
        if self._is_superseded or now_s < self._retry_at_s:
            return False
        try:
            self._write(source, self._header, is_last)
        except (OSError, MemoryError) as error:
            # What could not be appended is in no journal: so the next one begins with a base.
            self._close()
            self._retry_at_s = now_s + RETRY_EVERY_S
            reason = error.strerror if isinstance(error, OSError) else "there is no memory"
            self._fail(now_s, reason or str(error))
        except SupersededError:
            self._close()
            self._is_superseded = True
            self._fail(now_s, "another process writes them now")
        else:
            self._written_at_s = now_s
            self._told_at_s = -inf
            return True
        return False

    def _fail(self, now_s: float, reason: str) -> None:
        self._failures += 1
        if now_s >= self._told_at_s + TOLD_EVERY_S:
            self._told_at_s = now_s
            place = self._folder.place(self._name)
            LOG.error("counters are not on disk, and go on in memory alone: %s: %s", place, reason)

    def _write(self, source: CounterSource, header: JournalHeader, is_last: bool) -> None:
        journal = self._journal
        there = self._folder.header(self._name)
        is_own = there is not None and there.id == header.id
        if there is not None and not is_own and there.generation >= header.generation:
            raise SupersededError
        is_outgrown = journal is not None and journal.size > 2 * self._base_bytes + DELTAS_BYTES_MIN
        now_s = self._clock.monotonic_s()
        self._ends_at_s = {end: at_s for end, at_s in self._ends_at_s.items() if at_s > now_s}
        if journal is None or is_outgrown or not is_own or is_last:
            self._write_base(source, header)
        else:
            self._write_delta(source, [journal])

    def _write_base(self, source: CounterSource, header: JournalHeader) -> None:
        self._folder.make()
        self._folder.remove_drafts(self._name)
        draft = JournalFile(self._folder.place(self._name), header)
        is_in_place = False
        try:
            reset = self._fill(draft, source)
            draft.put_in_place()
            is_in_place = True
        finally:
            if not is_in_place:
                draft.close()
        self._close()
        self._journal, self._base_bytes, self._reset = draft, draft.size, reset
        try:
            self._folder.remove_taken_over(header)
        except OSError as error:
            LOG.warning("counter journals of before could not be removed: %s", error)

    def _fill(self, draft: JournalFile, source: CounterSource) -> int:
        """Write all counters into a draft; the journal before it goes on meanwhile. The number of
        the last reset in there."""
        # What has changed until now is in what is read next, too.
        self._write_delta(source, self._in_force)
        delta_at_s = self._clock.monotonic_s() + self.interval_s
        for some in source.everything():
            for end_s, _, _ in some:
                self._end_at_s(end_s)
            draft.append(counter_frames(some))
            if self._clock.monotonic_s() >= delta_at_s:
                self._write_delta(source, [draft, *self._in_force])
                delta_at_s = self._clock.monotonic_s() + self.interval_s
        self._write_delta(source, [draft])
        progress = source.progress(0)
        draft.append(_frames_of(progress))
        return progress.reset

    def _write_delta(self, source: CounterSource, journals: list[JournalFile]) -> None:
        """Write what has changed; the journal in force has it on disk afterwards."""
        has_written = False
        in_force = self._journal
        for _ in range(PAGES_MAX):
            changed = source.changed(CHANGED_AT_ONCE)
            frames = list(counter_frames(self._lasting(changed)))
            for journal in journals:
                journal.append(frames)
            has_written = has_written or bool(frames)
            if not changed:
                break
        if in_force is None:
            return
        if in_force in journals:
            progress = source.progress(self._reset)
            if has_written or progress.reset > self._reset:
                in_force.append(_frames_of(progress))
                self._reset, has_written = progress.reset, True
        if has_written:
            in_force.sync()

    @property
    def _in_force(self) -> list[JournalFile]:
        return [] if self._journal is None else [self._journal]

    def _lasting(self, counters: Iterable[CounterColumns]) -> Iterator[CounterColumns]:
        """Counters of windows that do not end too soon."""
        ends_after_s = self._clock.monotonic_s() + LIFE_LEFT_MIN_S
        return (columns for columns in counters if self._end_at_s(columns[0]) > ends_after_s)

    def _end_at_s(self, end_s: int) -> float:
        """When a window ends by the monotonic clock: as it was when the window was first seen, as
        the partition itself goes by."""
        left_s = end_s - self._clock.now_s()
        return self._ends_at_s.setdefault(end_s, self._clock.monotonic_s() + left_s)

    def _close(self) -> None:
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()


def _frames_of(progress: Progress) -> Iterator[Frame]:
    """The resets, and the mark behind all that it says is there."""
    yield from counter_frames(progress.resets, RESETS)
    if progress.handed_out is not None:
        yield mark_frame(progress.handed_out)
