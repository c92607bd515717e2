"""A partition's lending machine with what it needs in a process: a lock, clocks, and mail.

    receive(message) -> the mail of the front that sent it        the others' mail waits for them
    wait_for_mail    -> the standing call of a front, which comes back when there is mail

What calls a loan back, or answers late, is for a front that has not asked just now: it finds it
with its standing call, or in the answer to its next message. Mail that is lost is sent again by the
machines, so a box that is full drops the oldest.
"""

import logging
import pickle
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from threading import Condition, Lock
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.counter_row import CounterReset, CounterRow, RowsPage
from tollgate.actors.ratelimit.counting.eviction_notice import EvictionNotice
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.messages import (
    CounterColumns,
    CounterName,
    Progress,
    ToFront,
    ToPartition,
)
from tollgate.actors.ratelimit.lending.partition.listing import Place
from tollgate.actors.ratelimit.lending.partition.slot_table import ChangeReader
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms

LOG = logging.getLogger("tollgate.counters")
MAIL_MAX = 16
RESETS_MAX = 4
TOO_MANY_RESETS = f"{RESETS_MAX} resets wait in the counter partition already: ask again later"
LOOK_EVERY_S = 0.05
RESTORED_AT_ONCE = 1_024


class Roster(Protocol):
    """The fronts that may have borrowed something, kept for the next incarnation."""

    def left(self) -> Collection[str] | None:
        """Those of the incarnation before this one; None: nobody knows them all."""

    def write(self, fronts: Collection[str]) -> bool:
        """Write down all of this one. False: that cannot be done, and nothing is there."""


class MailBox:
    """The mail of one front. `lock`: the partition's."""

    def __init__(self, lock: Lock) -> None:
        self.has_come = Condition(lock)
        self.mail: deque[ToFront] = deque(maxlen=MAIL_MAX)

    def take(self) -> list[ToFront]:
        mail = list(self.mail)
        self.mail.clear()
        return mail


class LendingPartition:
    """One incarnation of a partition, see `Lender`. Thread-safe; what goes in and out is pickled.

    The machine begins with the first message, for it gives fronts so much time, and no more, to
    tell what they have: and it may take them a while to find a partition that has started again.

    What an earlier process has left behind is given to a machine when it begins; a machine that is
    the first one of all waits for nobody, and begins with that. Until it is open, which is when all
    that was left behind is there, messages are lost: whoever sent them says them again.

    An error of the machine leaves it in a state that nobody knows: its process has to end.
    """

    def __init__(
        self,
        terms: Terms,
        incarnation: int,
        clock: Clock,
        *,
        is_new: bool,
        keeps_changes: bool = False,
        is_open: bool = True,
        roster: Roster | None = None,
    ) -> None:
        self._clock = clock
        self._is_new = is_new
        self._is_open = is_open
        self._lock = Lock()
        self._passing = Condition(self._lock)
        self._resets = 0
        self._resetting = 0
        self._eviction_notice = EvictionNotice()
        self._boxes: dict[str, MailBox] = {}
        self._calls = 0
        self._lender: Lender | None = None
        self._restored: Lender | None = None
        """The machine that begins with the first message: what was left behind is in it."""
        # By reader: the last change and the last reset when nothing was left to hand out.
        self._handed_out: dict[ChangeReader, tuple[int, int]] = {}
        self._roster = roster
        self._enrolled: frozenset[str] | None = None
        self._make = partial(
            Lender,
            terms,
            incarnation,
            is_new=is_new,
            expected=None if roster is None else roster.left(),
            keeps_changes=keeps_changes,
        )

    def receive(self, call: bytes) -> bytes:
        """Take a front's message; what there is for it."""
        message: ToPartition = pickle.loads(call)
        with self._lock:
            self._calls += 1
            if not self._is_open:
                return pickle.dumps([], pickle.HIGHEST_PROTOCOL)
            wall_s, now_s = self._clock.now_s(), self._clock.monotonic_s()
            lender = self._lender or self._begin()
            envelopes = lender.receive(message, wall_s, now_s)
            if message.front not in (self._enrolled or ()):
                self._enrol(lender)
            self._post(envelopes)
            mail = self._box(message.front).take()
        return pickle.dumps(mail, pickle.HIGHEST_PROTOCOL)

    def wait_for_mail(self, front: str, patience_s: float) -> bytes:
        """What there is for a front, as soon as there is something, or nothing in the end."""
        with self._lock:
            self._calls += 1
            box = self._box(front)
            if not box.mail:
                box.has_come.wait(patience_s)
            mail = box.take()
        return pickle.dumps(mail, pickle.HIGHEST_PROTOCOL)

    def tick(self) -> None:
        """Let time pass. Fronts that are not there any more lose their boxes."""
        with self._lock:
            if self._lender is None:
                return
            envelopes = self._lender.tick(self._clock.now_s(), self._clock.monotonic_s())
            self._enrol(self._lender)
            self._post(envelopes)
            for front in self._boxes.keys() - self._lender.leases.keys():
                del self._boxes[front]
            notice = self._eviction_notice.look(
                self._lender.counters.table.evicted, self._clock.monotonic_s()
            )
        if notice:
            LOG.warning(notice)

    def describe(self) -> dict[str, int]:
        """The size of the table, what it has given up, and the calls that were taken."""
        with self._lock:
            if self._lender is None:
                return {"counters": 0, "evicted": 0, "calls": self._calls, "fronts": 0}
            counters, _ = self._lender.sizes()["counters_max"]
            held = self._lender.counters.held.values()
            return {
                "resets": self._resets,
                "resetting": self._resetting,
                "slots_lent": sum(len(each.slots) for each in held),
                "loans": sum(len(each.loans) for each in held),
                "clock_offset_ms": max(
                    (round(abs(each) * 1000) for each in self._lender.offsets_s.values()),
                    default=0,
                ),
                "counters": counters,
                "evicted": self._lender.counters.table.evicted,
                "calls": self._calls,
                "fronts": len(self._lender.leases),
            }

    def _enrol(self, lender: Lender) -> None:
        """Write down the fronts there are, if that is known, before any hears what it is lent."""
        fronts = None if self._roster is None else lender.roster
        if self._roster is None or fronts is None or fronts == self._enrolled:
            return
        self._enrolled = fronts
        if not self._roster.write(fronts):
            self._roster = None  # (the next one asks around for as long as it takes)

    # For operators

    def list_counters(self, is_wanted: Callable[[bytes], bool], after: Place | None) -> RowsPage:
        """Live counters whose keys are wanted, as fronts have told; the page after a place."""
        with self._lock:
            if self._lender is None:
                return RowsPage([], None)
            page = self._lender.listing.page(after, self._clock.now_s())
        wanted = [name for name in page.names if is_wanted(name[1])]  # (hits need not wait for it)
        return RowsPage(self._rows(wanted), page.after)

    def find_counters(self, keys: Sequence[bytes]) -> list[CounterRow]:
        """The live counters of these keys, in all their windows."""
        with self._lock:
            return [] if self._lender is None else self._find(self._lender, keys)

    def reset_counters(self, keys: Sequence[bytes], patience_s: float) -> list[CounterReset]:
        """Set these counters to 0, in all their windows, wherever they are. Waits for those that
        are lent to come back. At most RESETS_MAX wait at once; the next one fails at once."""
        with self._lock:
            lender = self._lender
            if lender is None:
                return []
            rows = self._find(lender, keys)
            if self._resetting >= RESETS_MAX:
                return [CounterReset(row, TOO_MANY_RESETS) for row in rows]
            now_s = self._clock.monotonic_s()
            pending = [lender.reset((row.end_s, row.key), patience_s, now_s) for row in rows]
            self._post(lender.tick(self._clock.now_s(), now_s))
            self._resetting += 1
            try:
                while not all(each.is_done for each in pending):
                    self._passing.wait(LOOK_EVERY_S)
            finally:
                self._resetting -= 1
            resets = [each.failure for each in pending]
            self._resets += resets.count(None)
        return [CounterReset(*each) for each in zip(rows, resets, strict=True)]

    def _rows(self, names: Sequence[CounterName]) -> list[CounterRow]:
        with self._lock:
            return [] if self._lender is None else self._lender.listing.rows(names)

    def _find(self, lender: Lender, keys: Sequence[bytes]) -> list[CounterRow]:
        return lender.listing.find(keys, self._clock.now_s())

    # What outlives the process

    def open(self) -> None:
        """Take messages: what was left behind is there."""
        with self._lock:
            self._is_open = True

    def restore(self, counters: Iterable[CounterColumns]) -> None:
        """Take what an earlier process has left behind, in the order in which it was written."""
        for end_s, keys, counts in counters:
            for first in range(0, len(keys), RESTORED_AT_ONCE):
                last = first + RESTORED_AT_ONCE
                with self._lock:
                    self._restore((end_s, keys[first:last], counts[first:last]))

    def changed(self, counters_max: int) -> list[CounterColumns]:
        """Up to so many counters that have changed since they were handed out here."""
        return self._changed(counters_max, ChangeReader.JOURNAL)

    def progress(self, after_reset: int) -> Progress:
        """How far `changed` has got, with the resets after that one."""
        return self._progress(after_reset, ChangeReader.JOURNAL)

    def everything(self) -> Iterator[list[CounterColumns]]:
        """All counters, some at a time."""
        for slot in range(SLOTS):
            with self._lock:
                lender = self._lender or self._restored
                some = (
                    []
                    if lender is None
                    else lender.counters.columns(slot) + lender.restored.asleep.columns(slot)
                )
            yield some

    def begin_copy(self) -> Iterator[list[CounterColumns]] | None:
        """All counters, some at a time; what changes from now on is remembered for the copy. None
        before the first message."""
        with self._lock:
            if self._lender is None:
                return None
            self._lender.counters.table.note_changes_for(ChangeReader.COPY)
            self._handed_out.pop(ChangeReader.COPY, None)
        return self.everything()

    def changed_since_copied(self, counters_max: int) -> list[CounterColumns]:
        """Up to so many counters that have changed since they were handed out here."""
        return self._changed(counters_max, ChangeReader.COPY)

    def copy_progress(self, after_reset: int) -> Progress:
        """How far `changed_since_copied` has got, with the resets after that one."""
        return self._progress(after_reset, ChangeReader.COPY)

    def end_copy(self) -> None:
        """Remember nothing for a copy any more."""
        with self._lock:
            if self._lender is not None:
                self._lender.counters.table.forget_changes_of(ChangeReader.COPY)

    def restore_resets(self, resets: Iterable[CounterColumns]) -> None:
        """Take the resets that earlier processes have done, behind the counters."""
        with self._lock:
            lender = self._lender or self._restored
            if lender is not None:
                lender.restored.put_resets(resets)

    def _changed(self, counters_max: int, reader: ChangeReader) -> list[CounterColumns]:
        with self._lock:
            lender = self._lender
            if lender is None or lender.told is not None:
                return []
            changed = lender.changed(counters_max, reader)
            if not lender.counters.table.has_changes(reader):
                counters = lender.counters
                self._handed_out[reader] = counters.table.changes, counters.resets.number
            return changed

    def _progress(self, after_reset: int, reader: ChangeReader) -> Progress:
        with self._lock:
            lender, handed_out = self._lender, self._handed_out.get(reader)
            if lender is None:
                return Progress()
            if handed_out is None:
                return Progress(lender.counters.table.changes)
            change, reset = handed_out
            resets = lender.counters.resets.between(after_reset, reset)
            return Progress(lender.counters.table.changes, change, reset, resets)

    def _restore(self, columns: CounterColumns) -> None:
        now_s = self._clock.monotonic_s()
        lender = self._lender or self._restored or self._make(now_s)
        lender.restore([columns], self._clock.now_s(), now_s)
        if self._is_new:
            self._lender = lender
        elif self._lender is None:
            self._restored = lender

    def _begin(self) -> Lender:
        """The machine, with all that was left behind."""
        now_s = self._clock.monotonic_s()
        self._lender, self._restored = self._restored or self._make(now_s), None
        self._lender.begin(now_s)
        return self._lender

    def _box(self, front: str) -> MailBox:
        box = self._boxes.get(front)
        if box is None:
            box = self._boxes[front] = MailBox(self._lock)
        return box

    def _post(self, envelopes: Mapping[str, ToFront]) -> None:
        for front, envelope in envelopes.items():
            box = self._box(front)
            box.mail.append(envelope)
            box.has_come.notify_all()
