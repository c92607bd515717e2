"""The partition's side of lending: owns the counters, lends them to fronts, and counts the rest.

    a message comes -> loans that have run out are taken back -> its items are taken, in order
      -> requests are counted, or wait for what is out on loan
      -> an envelope to the sender, and to each front from whom something is called back

A pure machine: it is handed messages, the wall clock and a monotonic clock, and hands messages
back. Nobody is refused while quota that could admit them is out on loan, and nothing lent is lent
again before it has come back or its term has run out.
"""

from collections.abc import Collection, Iterable

from tollgate.actors.ratelimit.lending.item_stream import ItemStream
from tollgate.actors.ratelimit.lending.messages import (
    Ask,
    Claim,
    CounterColumns,
    CounterName,
    Forgotten,
    LimitedHit,
    Outcome,
    Return,
    Spent,
    Surrender,
    ToFront,
    ToldAll,
    ToldNotes,
    ToldSlots,
    ToPartition,
    Unheard,
)
from tollgate.actors.ratelimit.lending.partition.front_mail import FrontMail
from tollgate.actors.ratelimit.lending.partition.leases import Lease, Leases, own_falls
from tollgate.actors.ratelimit.lending.partition.lent_counters import LentCounters
from tollgate.actors.ratelimit.lending.partition.listing import Listing
from tollgate.actors.ratelimit.lending.partition.recovery import Recovery
from tollgate.actors.ratelimit.lending.partition.sleeping_counters import RestoredLentCounters
from tollgate.actors.ratelimit.lending.partition.slot_table import ChangeReader
from tollgate.actors.ratelimit.lending.partition.tasks import (
    PendingReset,
    ResetNews,
    Task,
    TaskQueue,
)
from tollgate.actors.ratelimit.lending.terms import Terms, slot_of

RECOVERING = "the counter partition has started again and is asking what is out on loan"
TOO_MANY_WAIT = "too many requests wait in the counter partition for loans to come back"
NOT_IN_TIME = "what is out on loan did not come back to the counter partition in time"
WINDOW_ENDED = "the window has ended in the counter partition"

EPOCH_BITS = 32
"""Of an epoch, those that count within one incarnation; the incarnation is above them. So no epoch
is given twice, although nobody may have told a new incarnation of the last one."""


class Lender:
    """One incarnation of a partition. Not thread-safe.

    `incarnation` rises with every start. `is_new`: there has been none before, so nothing can be
    out on loan; otherwise `expected` are all fronts that may hold something, if that is known.
    `keeps_changes`: somebody writes down what `changed` hands out.
    """

    def __init__(
        self,
        terms: Terms,
        incarnation: int,
        now_s: float,
        *,
        is_new: bool,
        expected: Collection[str] | None = None,
        keeps_changes: bool = False,
    ) -> None:
        self._terms = terms
        self._incarnation = incarnation
        self._leases = Leases(terms)
        self._tasks = TaskQueue(terms.deferred_max)
        self._news = ResetNews(self._leases, terms.deferred_max)
        self._mail = FrontMail(incarnation, self._leases)
        self._claims: set[str] = set()
        self._has_come_back = False
        first_epoch = incarnation << EPOCH_BITS
        self.counters = LentCounters(
            terms, self._mail.send, first_epoch=first_epoch, keeps_changes=keeps_changes
        )
        self.listing = Listing(self.counters)
        self.restored = RestoredLentCounters(self.counters, terms, now_s, is_new=is_new)
        self._recovery = None if is_new else Recovery(terms, now_s, expected)
        self.begin(now_s)

    def begin(self, now_s: float) -> None:
        """Give fronts their time, from now on, to tell what they have. Once more before the first
        message, if it took a while to restore what was left behind."""
        self._moved_s = now_s
        if self._recovery is not None:
            self._recovery.begin(now_s)

    @property
    def told(self) -> frozenset[str] | None:
        """The fronts that have told what they hold, while the partition recovers; else None."""
        return None if self._recovery is None else self._recovery.told

    @property
    def roster(self) -> frozenset[str] | None:
        """The fronts that may hold something: `expected` of the next incarnation. It has to be kept
        before a message goes out that somebody who is new in it may get. None: it is not known."""
        if self._recovery is None:
            return frozenset(self._leases.by_front)
        expected = self._recovery.expected
        return None if expected is None else expected | self._leases.by_front.keys()

    @property
    def leases(self) -> dict[str, int]:
        """The lease of each front that is heard of."""
        return {front: lease.number for front, lease in self._leases.by_front.items()}

    @property
    def offsets_s(self) -> dict[str, float]:
        """How far ahead each front's wall clock is."""
        return {front: lease.offset_s for front, lease in self._leases.by_front.items()}

    def changed(
        self, counters_max: int, reader: ChangeReader = ChangeReader.JOURNAL
    ) -> list[CounterColumns]:
        """Up to so many counters that have changed since the reader was handed them: absolute.
        None while the partition recovers."""
        if self._recovery is not None:
            return []
        return self.counters.as_known(self.counters.table.take_changes(counters_max, reader))

    def sizes(self) -> dict[str, tuple[int, int]]:
        """(how many, at most) of everything that is kept, by the name of the bound."""
        terms, held = self._terms, self.counters.held.values()
        streams_max = ItemStream.length_max(terms)
        streams = [len(lease.stream) for lease in self._leases.by_front.values()]
        return {
            "counters_max": (len(self.counters.table), terms.counters_max),
            "fronts_max": (len(self._leases.by_front), terms.fronts_max),
            "loans_max": (max((len(each.loans) for each in held), default=0), terms.loans_max),
            "deferred_max": (len(self._tasks), terms.deferred_max),
            "unheard_max": (len(self.counters.late), terms.unheard_max),
            "unacknowledged_max": (max(streams, default=0), streams_max),
        }

    def receive(self, message: ToPartition, wall_s: float, now_s: float) -> dict[str, ToFront]:
        """Take a message; those that go out now, by front. `wall_s`: seconds of the epoch."""
        self._move(now_s)
        lease = self._leases.of(message.front, now_s)
        if lease is not None:
            self._mail.touch(message.front)
            if (message.incarnation, message.lease) == (self._incarnation, lease.number):
                with own_falls(lease, self.counters.table):
                    self._take(message, lease, wall_s, now_s)
        self._settle(now_s)
        return self._envelopes(wall_s, now_s)

    def tick(self, wall_s: float, now_s: float) -> dict[str, ToFront]:
        """Let time pass; what goes out now. To be called every `margin_s` / 2 and `resend_s`."""
        self._move(now_s)
        if self._recovery is None:
            self.restored.wake(wall_s, now_s)
        self._settle(now_s)
        self._mail.touch(*self._leases.to_tell(self.counters.table.falls, now_s))
        return self._envelopes(wall_s, now_s)

    # For operators

    def reset(self, counter: CounterName, patience_s: float, now_s: float) -> PendingReset:
        """Set a counter to 0 once it has come back from whoever has it; it is done when all fronts
        know. Call `tick` afterwards: it says what is called back."""
        pending = PendingReset(counter)
        hit = LimitedHit(*counter, 0, None)
        task = Task("", 0, 0, [hit], False, 0, now_s + patience_s, pending)
        if self._tasks.is_full or self._news.is_full:
            self._answer(task, TOO_MANY_WAIT)
        elif not (task.counters.isdisjoint(self._tasks.counters) and self._reset(pending)):
            self._tasks.put(task)
        return pending

    def _reset(self, pending: PendingReset) -> bool:
        # It waits, too, for a front that can be told nothing: it reads, or it is lost in the end.
        is_too_early = self._recovery is not None or self._leases.has_full_stream
        if is_too_early or not self.counters.reset(pending.counter, self._moved_s):
            return False
        news = Forgotten(pending.counter, self.counters.resets.epoch(pending.counter))
        for front in self._leases.readers:
            self._mail.send(front, news)
        self._news.put(pending)
        return True

    # Leases

    def _move(self, now_s: float) -> None:
        """Let the time pass since the last call: windows end, loans run out, patience ends."""
        slept_s = now_s - self._moved_s - self._terms.margin_s
        if slept_s > 0:
            self._leases.prolong(slept_s)
        self._moved_s = now_s
        if self._recovery is not None and self._recovery.is_over(now_s):
            self._end_recovery(self._recovery)
        # While it recovers nothing is lent to anybody else, so nothing has to fall back.
        for front, lease in [] if self._recovery is not None else self._leases.ended(now_s):
            self._lapse(front, lease, now_s)
        ended = self.counters.end_windows(now_s)
        for task in self._tasks.drop(lambda task: task.until_s <= now_s):
            self._answer(task, NOT_IN_TIME)
        is_ended = lambda task: any(hit.end_s in ended for hit in task.hits)  # noqa: E731
        for task in self._tasks.drop(is_ended) if ended else []:
            self._answer(task, WINDOW_ENDED)

    def _lapse(self, front: str, lease: Lease, now_s: float) -> None:
        """A front was not heard of for its term: all that it has is taken back."""
        self.counters.lapse(front)
        self._tasks.drop(lambda task: task.front == front)
        self._claims.discard(front)
        self._leases.end(front, lease, now_s)
        self._has_come_back = True

    # What fronts say

    def _take(self, message: ToPartition, lease: Lease, wall_s: float, now_s: float) -> None:
        if message.stamp_s > lease.heard_s:
            lease.heard_s = message.stamp_s
            self._leases.renew(lease, now_s)
        lease.offset_s = message.wall_s - wall_s
        was_full = lease.stream.is_full
        lease.stream.take(message.acknowledged, [])
        if lease.stream.is_full:
            return  # (the front does not read: so it is not read either)
        self._has_come_back |= was_full
        items = lease.stream.take(message.acknowledged, message.items)
        for before, item in enumerate(items, lease.stream.taken - len(items)):
            match item:
                case Ask():
                    self._ask(message.front, item, lease, wall_s, now_s)
                case Claim():
                    self._claims.add(message.front)
                case Spent():
                    self.counters.table.open_windows(item.counters, wall_s, now_s)
                    self.counters.report(message.front, item.counters, item.quotas)
                case Surrender():
                    for counter, spent in item.quotas:
                        hits = self.counters.end_loan(message.front, counter, spent)
                        if self._recovery is not None:
                            self._recovery.ended[counter] += hits
                    self._has_come_back = True
                case Return():
                    self.counters.table.open_windows(item.counters, wall_s, now_s)
                    self.counters.report(message.front, item.counters, [])
                    self.counters.take_back(message.front, item.slot, now_s)
                    self._has_come_back = True
                case Unheard():
                    self.counters.table.open_windows(item.counters, wall_s, now_s)
                    self.counters.add_late(item.counters, lease.lost_s)
                case ToldSlots() | ToldNotes() | ToldAll():
                    if self._recovery is None:
                        # Too late, as all behind it: it may have been lent to others meanwhile.
                        lease.stream.taken = before
                        self._lapse(message.front, lease, now_s)
                        return
                    self._recovery.be_told(message.front, item, self.counters, wall_s, now_s)
                    if self._recovery.is_over(now_s):
                        self._end_recovery(self._recovery)

    def _ask(self, front: str, ask: Ask, lease: Lease, wall_s: float, now_s: float) -> None:
        lendable: set[int] = set()
        until_s = now_s + ask.patience_s
        for number, hits, wanted in zip(ask.numbers, ask.requests, ask.wanted, strict=True):
            task = Task(front, ask.call, number, hits, ask.is_conditional, wanted, until_s)
            outcome = self._begin(task, lease, wall_s, now_s)
            if outcome is None:
                continue
            self._mail.answer(front, ask.call, outcome)
            if isinstance(outcome.counts, list):
                slots = {slot_of(hit.key) for hit in hits}
                # Of a request under B9, only all slots together are of use at home.
                if not ask.is_conditional or all(
                    self.counters.is_lendable(slot, front) for slot in slots
                ):
                    lendable |= slots
        self._mail.put_answers(front)
        self.counters.lend_slots(front, sorted(lendable), self._tasks.counters)

    def _begin(self, task: Task, lease: Lease, wall_s: float, now_s: float) -> Outcome | None:
        """Count a task that has just come, or have it wait (None)."""
        reason = self._refusal(task, lease, wall_s)
        if reason is None:
            for hit in task.hits:
                self.counters.table.open_window(hit.end_s, wall_s, now_s)
            if task.counters.isdisjoint(self._tasks.counters):
                outcome = self.counters.attempt(task, now_s)
                if outcome is not None:
                    return outcome
            if not self._tasks.is_full:
                self._tasks.put(task)
                return None
            reason = TOO_MANY_WAIT
        return Outcome(task.request, reason, [], [])

    def _refusal(self, task: Task, lease: Lease, wall_s: float) -> str | None:
        """The reason why a task cannot be counted now, whatever the counters are."""
        skew_max_s = self._terms.skew_max_s
        if abs(lease.offset_s) > skew_max_s:
            return lease.describe_skew(skew_max_s)
        if any(hit.end_s <= wall_s - skew_max_s for hit in task.hits):
            return WINDOW_ENDED
        if self._recovery is not None and any(
            self.counters.slots[slot_of(hit.key)].holder is None for hit in task.hits
        ):
            return RECOVERING
        return None

    def _settle(self, now_s: float) -> None:
        """Count what has waited for something that has come back."""
        if self._has_come_back:
            self._has_come_back = False
            self._tasks.retry(lambda task: self._attempt(task, now_s))
        if self._claims and self._recovery is None:
            self._grant_claims()
        self._news.settle()
        self._mail.put_all_answers()

    def _grant_claims(self) -> None:
        """Lend what was claimed, but to nobody who may not count anyway."""
        for front in sorted(self._claims):
            lease = self._leases.by_front.get(front)
            if lease is not None and abs(lease.offset_s) <= self._terms.skew_max_s:
                self.counters.claim(front, self._tasks.counters)
        self._claims.clear()

    def _attempt(self, task: Task, now_s: float) -> bool:
        if task.reset is not None:
            return self._reset(task.reset)
        outcome = self.counters.attempt(task, now_s)
        if outcome is not None:
            self._mail.answer(task.front, task.call, outcome)
        return outcome is not None

    def _answer(self, task: Task, reason: str) -> None:
        if task.reset is not None:
            task.reset.is_done, task.reset.failure = True, reason
            return
        outcome = Outcome(task.request, reason, [], [])
        self._mail.answer(task.front, task.call, outcome)

    def _envelopes(self, wall_s: float, now_s: float) -> dict[str, ToFront]:
        falls, is_recovering = self.counters.table.falls, self._recovery is not None
        return self._mail.envelopes(wall_s, now_s, falls, is_recovering=is_recovering)

    # Starting again

    def restore(self, counters: Iterable[CounterColumns], wall_s: float, now_s: float) -> None:
        """Take counters that an earlier incarnation has left behind: before the first message, and
        as often as there are any; what comes later of a counter holds. They do not count as
        changed: whoever keeps them writes everything first."""
        for columns in counters:
            self.restored.put(columns, wall_s, now_s)

    def _end_recovery(self, recovery: Recovery) -> None:
        recovery.end(self.counters)
        self._recovery = None
        self._has_come_back = True
