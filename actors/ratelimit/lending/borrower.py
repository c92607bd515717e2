"""The front's side of lending, for one partition: counts at home what is lent, asks for the rest.

    hit -> counted at home, or asked for (a PendingCall that is not done)
    outgoing -> the envelope with what is to be said: requests, reports, what is given back
    receive -> answers complete calls; loans come, and go back when they are recalled

A pure machine like the partition's. It decides from its loans only while it has heard from the
partition within the term, counted from when it *sent* what was answered, and while both agree about
the time of day; otherwise it asks for everything, and the partition says what holds.
"""

from collections.abc import Sequence
from math import inf

from tollgate.actors.ratelimit.counting.counters import TABLE_FULL, Conditional, Unreachable
from tollgate.actors.ratelimit.lending.account import account_of
from tollgate.actors.ratelimit.lending.asks import Asks
from tollgate.actors.ratelimit.lending.home_counters import FULL, NOT_HERE, HomeCounters
from tollgate.actors.ratelimit.lending.item_stream import ItemStream
from tollgate.actors.ratelimit.lending.messages import (
    Answer,
    Claim,
    Forgotten,
    FrontItem,
    LimitedHit,
    LimitedHits,
    Outcome,
    PartitionItem,
    QuotaLoan,
    QuotaRecall,
    Return,
    SlotLoan,
    SlotLoans,
    SlotRecall,
    ToFront,
    ToPartition,
    Unheard,
)
from tollgate.actors.ratelimit.lending.notes import Notes
from tollgate.actors.ratelimit.lending.pending_call import PendingCall
from tollgate.actors.ratelimit.lending.reports import Reports
from tollgate.actors.ratelimit.lending.terms import Terms, slot_of


class Borrower:
    """One front, towards one partition. `front` is this process's name, and no other's, ever.

    Not thread-safe. Times as in the partition's machine: `wall_s` of the epoch, `now_s` monotonic.
    """

    def __init__(self, terms: Terms, front: str) -> None:
        self._terms = terms
        self._front = front
        self._lease = (0, 0)
        self._stream: ItemStream[PartitionItem, FrontItem] = ItemStream(terms)
        self._trusted_until_s = -inf
        self._echo_s = -inf
        self._offset_s = inf  # the partition's wall clock minus this process's monotonic clock
        self._opening_offset_s = inf  # the same of the clock by which messages open windows
        self._told_item = 0
        self._say_by_s = -inf
        self._said_at_s = -inf
        self._claim_at_s = -inf
        self._claim_item = 0
        self._is_ending = False
        self._notes = Notes(terms)
        self._home = HomeCounters(terms, self._notes)
        self._reports = Reports(terms, self._stream, self._home, self._notes)
        self._asks = Asks(terms, self._stream, self._reports)

    @property
    def evicted(self) -> int:
        """The live counters that were given up because the table was full."""
        return self._home.evicted

    @property
    def is_said(self) -> bool:
        """Whether the partition has taken all that was to be said."""
        return not len(self._stream)

    def sizes(self) -> dict[str, tuple[int, int]]:
        """(how many, at most) of everything that is kept, by the name of the bound."""
        terms = self._terms
        streams_max = ItemStream.length_max(terms)
        return {
            "counters_max": (len(self._home), terms.counters_max),
            "notes_max": (len(self._notes), terms.notes_max),
            "unacknowledged_max": (len(self._stream), streams_max),
            **self._asks.sizes(),
        }

    # Counting

    def hit(
        self, batch: Sequence[LimitedHits], wall_s: float, now_s: float, patience_s: float
    ) -> PendingCall:
        """Count a batch. Whoever waits for what is not done gives up after `patience_s`; without
        patience, nothing is asked for."""
        if self._may_decide(wall_s, now_s):
            home, partition_s = self._home, now_s + self._offset_s
            home.has_missed = False
            counts = [home.hit(hits, hits.end_s - partition_s, now_s) for hits in batch]
            if not home.has_missed:
                return PendingCall(counts)
        else:
            counts = [[NOT_HERE] * len(hits.keys) for hits in batch]
        call = PendingCall(counts)
        for row, column in enumerate(counts):
            if column and min(column) < 0:
                self._find_awaited(call, row, column, batch[row])
        if call.left:
            self._asks.ask(call, now_s, patience_s)
        return call

    def _may_decide(self, wall_s: float, now_s: float) -> bool:
        skew_s = wall_s - now_s - self._offset_s
        return now_s < self._trusted_until_s and abs(skew_s) <= self._terms.skew_max_s

    def _find_awaited(
        self, call: PendingCall, row: int, column: list[int], hits: LimitedHits
    ) -> None:
        end_s, keys, addends, limits = hits
        for number, count in enumerate(column):
            if count == FULL:
                call.counts[row][number] = Unreachable(TABLE_FULL)
            elif count == NOT_HERE:
                hit = LimitedHit(end_s, keys[number], addends[number], limits[number])
                call.wait_for([hit], [(row, number)])

    def hit_conditionally(
        self, batch: Sequence[Conditional], wall_s: float, now_s: float, patience_s: float
    ) -> PendingCall:
        """Count requests by B9, at home where all counters of a request are in slots that are lent
        whole, and no earlier one of the batch is under way in any of them."""
        counts: list[list[int]] = []
        call = PendingCall(counts, is_conditional=True)
        may_decide = self._may_decide(wall_s, now_s)
        asked: set[int] = set()
        for row, request in enumerate(batch):
            slots = {slot_of(key) for key in request.keys}
            if not slots or (may_decide and asked.isdisjoint(slots) and self._home.has(request)):
                partition_s = now_s + self._offset_s
                counts.append(self._home.hit_conditionally(request, partition_s, now_s))
                if FULL in counts[row]:
                    call.counts[row] = [Unreachable(TABLE_FULL)] * len(request.keys)
                continue
            counts.append([NOT_HERE] * len(request.keys))
            asked |= slots
            hits = [LimitedHit(*each) for each in zip(*request, strict=True)]
            call.wait_for(hits, [(row, column) for column in range(len(hits))])
        if call.left:
            self._asks.ask(call, now_s, patience_s)
        return call

    # Messages

    def outgoing(self, wall_s: float, now_s: float) -> ToPartition | None:
        """The message that is due, if one is. To be called after each `hit` and `receive`, and at
        least every `report_every_s`: that is how time passes here."""
        self._asks.end(now_s)
        for end_s in self._home.ended(now_s):
            self._notes.end_window(end_s)
        self._reports.report(now_s)
        if now_s >= self._claim_at_s:
            self._claim(now_s)
        is_in_doubt = self._is_in_doubt(now_s)
        is_due = self._stream.is_due(now_s) and (
            not is_in_doubt or now_s >= self._said_at_s + self._terms.resend_s
        )
        if now_s < self._say_by_s and not is_due:
            return None
        self._said_at_s = now_s
        self._say_by_s = now_s + self._terms.term_s / 4
        items = [] if is_in_doubt else self._stream.due(now_s)
        items = [(number, self._asks.as_of(item, now_s)) for number, item in items]
        return ToPartition(self._front, *self._lease, now_s, wall_s, self._stream.taken, items)

    def lose(self, now_s: float) -> None:
        """A message is known to be lost: `outgoing` says it once more, but not for ever at once."""
        self._say_by_s = min(self._say_by_s, self._stream.lose(now_s))

    def _is_in_doubt(self, now_s: float) -> bool:
        """Whether the partition may have taken this front for lost. Then the front first asks how
        things stand: what it does not send is not lost with its lease."""
        return (
            -inf < self._trusted_until_s <= now_s and self._stream.acknowledged >= self._told_item
        )

    def _claim(self, now_s: float) -> None:
        """Ask ahead of need for all slots that are not here."""
        is_waiting = self._lease == (0, 0) or self._stream.acknowledged < self._claim_item
        is_refused = self._is_ending or self._stream.is_full
        if not (is_waiting or is_refused or self._home.has_all_slots):
            self._claim_item = self._stream.put(Claim())
            self._claim_at_s = now_s + self._terms.claim_every_s

    def receive(self, message: ToFront, wall_s: float, now_s: float) -> None:
        """Take a message; calls may be done afterwards."""
        lease = (message.incarnation, message.lease)
        if lease < self._lease:
            return
        if lease > self._lease:
            self._change_lease(lease, message, now_s)
        items = self._stream.take(message.acknowledged, message.items)
        if message.echo_s >= self._echo_s:
            self._echo_s = message.echo_s
            self._offset_s = message.wall_s - now_s
        self._opening_offset_s = self._clock_to_open(wall_s - now_s)
        if self._stream.acknowledged >= self._told_item:
            self._trusted_until_s = max(self._trusted_until_s, message.echo_s + self._terms.term_s)
        if message.items:
            self._say_by_s = min(self._say_by_s, now_s + self._terms.acknowledge_s)
        for item in items:
            match item:
                case Answer():
                    self._take_answer(item, now_s)
                case SlotLoan():
                    self._take_slots([item], now_s)
                case SlotLoans():
                    if self._take_slots(item.loans, now_s) and item.has_more:
                        self._claim_at_s = -inf
                case QuotaLoan():
                    self._open_window(item.counter[0], now_s)
                    self._notes.lend(item)
                case SlotRecall():
                    self._reports.give_slot(item.slot)
                case QuotaRecall():
                    self._reports.surrender(item.counters)
                case Forgotten():
                    self._open_window(item.counter[0], now_s)
                    self._notes.begin_anew(*item)

    def _clock_to_open(self, own_offset_s: float) -> float:
        """The partition's clock; while the two do not agree, the one by which windows last longer:
        the other may have jumped, and loans may be had in the window when it is put right."""
        if abs(own_offset_s - self._offset_s) <= self._terms.skew_max_s:
            return self._offset_s
        return min(own_offset_s, self._offset_s)

    def _take_slots(self, loans: Sequence[SlotLoan], now_s: float) -> bool:
        """Take slots, or give those back at once that cannot be taken: False."""
        partition_s = now_s + self._opening_offset_s
        before = self._stream.put_last
        for loan in loans:
            if self._is_ending or not self._home.take_slot(*loan, partition_s, now_s):
                self._stream.put(Return(loan.slot, []))
        return self._stream.put_last == before

    def _open_window(self, end_s: int, now_s: float) -> None:
        """Make sure that the window's notes go with it."""
        self._home.open_window(end_s, end_s - now_s - self._opening_offset_s, now_s)

    def _take_answer(self, answer: Answer, now_s: float) -> None:
        call = self._asks.find(answer.call)
        if call is None:
            return  # whoever waited has given up
        again = []
        for outcome in answer.outcomes:
            if call.awaited[outcome.request].is_answered:
                continue
            if isinstance(outcome.counts, str):
                call.settle(outcome.request, Unreachable(outcome.counts))
            elif outcome.counts is None:
                if not self._count_at_home(call, outcome.request, now_s):
                    again.append(outcome.request)
            else:
                self._note_parts(call, outcome, now_s)
                call.settle(outcome.request, outcome.counts)
        if again:
            # The slot was called back in between: so it is for the partition to count, after all.
            self._asks.put(call, again, now_s)
        if call.is_done:
            self._asks.close(call)

    def _note_parts(self, call: PendingCall, outcome: Outcome, now_s: float) -> None:
        hits = call.awaited[outcome.request].hits
        for hit, counted, epoch in zip(hits, outcome.counted, outcome.epochs, strict=True):
            self._open_window(hit.end_s, now_s)
            self._notes.add_part(hit.counter, counted, epoch)

    def _count_at_home(self, call: PendingCall, request: int, now_s: float) -> bool:
        """Count what the partition has handed back, for the slot is here."""
        hits = call.awaited[request].hits
        is_here = all(self._home.epoch(slot_of(hit.key)) for hit in hits)
        if not is_here or now_s >= self._trusted_until_s:
            return False
        partition_s = now_s + self._opening_offset_s
        if call.is_conditional:
            conditional = Conditional(*(list(column) for column in zip(*hits, strict=True)))
            counts = self._home.hit_conditionally(conditional, partition_s, now_s)
        else:
            (hit,) = hits
            columns = LimitedHits(hit.end_s, [hit.key], [hit.addend], [hit.limit or 0])
            counts = self._home.hit(columns, hit.end_s - partition_s, now_s)
        call.settle(request, Unreachable(TABLE_FULL) if FULL in counts else counts)
        return True

    # Giving back

    def give_back(self) -> None:
        """Give all loans back, and keep no other slot: the front is about to end."""
        self._is_ending = True
        for slot in self._home.slots():
            self._reports.give_slot(slot)
        self._reports.surrender([counter for counter, _ in self._notes.loans()])

    # Leases

    def _change_lease(self, lease: tuple[int, int], message: ToFront, now_s: float) -> None:
        """The partition has started again, or has taken back all that this front had."""
        before, self._lease = self._lease, lease
        stream, self._stream = self._stream, ItemStream(self._terms)
        taken = _taken(before, lease, message.before, stream.put_last)
        self._claim_item = self._told_item = 0
        self._claim_at_s = -inf
        is_lent = message.is_recovering and now_s < self._trusted_until_s
        if not is_lent:
            unheard = self._reports.end_all(taken)
            self._trusted_until_s = -inf
            if lease[0] == before[0]:
                # (Of what was told, and came too late, it has only what was restored; but this has
                # come since then.)
                for each in unheard:
                    self._stream.put(each)
        if message.is_recovering:
            for told in account_of(self._home, self._notes, self._terms.reported_max):
                self._told_item = self._stream.put(told)
        untaken = stream.untaken(taken)
        for item in untaken:
            if isinstance(item, Unheard) and lease[0] == before[0]:
                self._stream.put(item)
        self._reports.begin(self._stream)
        self._asks.begin(self._stream, untaken)


def _taken(
    lease_before: tuple[int, int], lease: tuple[int, int], before: tuple[int, int], put_last: int
) -> int:
    """The items of a lease that ended that the partition may have taken. `before`: the lease that
    it says it has ended for the new one, and the last item taken of it."""
    if lease_before == (0, 0):
        return 0
    if before[0] == lease_before[1] and lease[0] == lease_before[0]:
        return before[1]
    return put_last
