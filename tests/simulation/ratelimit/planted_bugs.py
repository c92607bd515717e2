"""Bugs that lending could have, planted into ours: the simulation must find every one of them.

Each replaces a piece of the real code for the time of a test.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tollgate.actors.ratelimit.lending.asks import Asks
from tollgate.actors.ratelimit.lending.borrower import Borrower
from tollgate.actors.ratelimit.lending.home_counters import HomeCounters
from tollgate.actors.ratelimit.lending.item_stream import ItemStream
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.messages import (
    CounterName,
    LimitedHit,
    QuotaLoan,
    SlotLoan,
    SlotLoans,
    ToFront,
    ToPartition,
    Unheard,
)
from tollgate.actors.ratelimit.lending.notes import Note, Notes
from tollgate.actors.ratelimit.lending.partition import lent_counters
from tollgate.actors.ratelimit.lending.partition.leases import Lease
from tollgate.actors.ratelimit.lending.partition.lent_counters import LentCounters
from tollgate.actors.ratelimit.lending.partition.loans import Slot, counted_and_reserved
from tollgate.actors.ratelimit.lending.partition.tasks import TaskQueue
from tollgate.actors.ratelimit.lending.reports import Reports

Plant = Callable[[pytest.MonkeyPatch], None]


def slot_returned_and_kept(patch: pytest.MonkeyPatch) -> None:
    """A front gives a slot back, and goes on counting in it."""

    def give_slot(self: HomeCounters, slot: int) -> Any:
        columns = self.tell(slot)
        return columns, [], columns

    patch.setattr(HomeCounters, "give_slot", give_slot)


def slot_recall_lost(patch: pytest.MonkeyPatch) -> None:
    """The partition notes that it has called a slot back, and has not."""

    def recall_slot(self: LentCounters, number: int, slot: Slot) -> None:
        del self, number
        slot.is_recalled = True

    patch.setattr(LentCounters, "_recall_slot", recall_slot)


def slot_lent_to_two(patch: pytest.MonkeyPatch) -> None:
    """A slot that was called back is there at once."""
    recall_slot = LentCounters._recall_slot

    def recall_and_take(self: LentCounters, number: int, slot: Slot) -> None:
        holder = slot.holder
        recall_slot(self, number, slot)
        assert holder is not None
        self.take_back(holder, number, 0.0)

    patch.setattr(LentCounters, "_recall_slot", recall_and_take)


def decided_after_the_term(patch: pytest.MonkeyPatch) -> None:
    """A loan is a loan."""

    def may_decide(self: Borrower, wall_s: float, now_s: float) -> bool:
        del wall_s, now_s
        return self._trusted_until_s > 0

    patch.setattr(Borrower, "_may_decide", may_decide)


def term_counted_from_the_answer(patch: pytest.MonkeyPatch) -> None:
    """A front counts its term from when it heard, not from when it spoke."""
    receive = Borrower.receive

    def receive_late(self: Borrower, message: ToFront, wall_s: float, now_s: float) -> None:
        if message.echo_s > -1e9:
            message = message._replace(echo_s=now_s)
        receive(self, message, wall_s, now_s)

    patch.setattr(Borrower, "receive", receive_late)


def term_cut_short(patch: pytest.MonkeyPatch) -> None:
    """The partition has less patience than it promised."""
    take = Lender._take

    def take_short(
        self: Lender, message: ToPartition, lease: Lease, wall_s: float, now_s: float
    ) -> None:
        take(self, message, lease, wall_s, now_s)
        lease.until_s = min(lease.until_s, now_s + self._terms.term_s / 2)

    patch.setattr(Lender, "_take", take_short)


def report_applied_twice(patch: pytest.MonkeyPatch) -> None:
    """What is reported as spent is added to what was."""
    report = LentCounters.report

    def report_more(
        self: LentCounters, front: str, counters: Any, quotas: list[tuple[CounterName, int]]
    ) -> None:
        loans = self.held[front].loans
        more = [
            (counter, spent + loans[counter].loans[counter][front].spent)
            for counter, spent in quotas
            if counter in loans
        ]
        report(self, front, counters, more)

    patch.setattr(LentCounters, "report", report_more)


def items_taken_as_they_come(patch: pytest.MonkeyPatch) -> None:
    """Whatever arrives is done, once more if it arrives once more."""

    def take(self: ItemStream[Any, Any], acknowledged: int, items: list[tuple[int, Any]]) -> Any:
        self.acknowledged = max(self.acknowledged, acknowledged)
        while self._unacknowledged and self._unacknowledged[0].number <= acknowledged:
            self._unacknowledged.popleft()
        self.taken = max([self.taken, *(number for number, _ in items)])
        return [content for _, content in items]

    patch.setattr(ItemStream, "take", take)


def surrender_counted_twice(patch: pytest.MonkeyPatch) -> None:
    """What was spent of a loan is counted when it is reported, and when the loan ends."""
    end_loan = LentCounters.end_loan

    def end_loan_again(
        self: LentCounters, front: str, counter: CounterName, spent: int | None = None
    ) -> int:
        slot = self.held[front].loans.get(counter)
        reported = 0 if slot is None else slot.loans[counter][front].spent
        return end_loan(self, front, counter, None if spent is None else spent + reported)

    patch.setattr(LentCounters, "end_loan", end_loan_again)


def refused_without_recall(patch: pytest.MonkeyPatch) -> None:
    """What is lent is spent."""

    def counted(self: LentCounters, hit: LimitedHit, slot: Slot) -> int:
        own = self.table.count(lent_counters.slot_of(hit.key), hit.end_s, hit.key)
        return sum(counted_and_reserved(own, slot.loans.get(hit.counter, {})))

    patch.setattr(LentCounters, "_counted", counted)
    patch.setattr(lent_counters, "loans_in_the_way", lambda *_, **__: set())


def admitted_without_recall(patch: pytest.MonkeyPatch) -> None:
    """What is lent and not spent is free."""
    patch.setattr(lent_counters, "loans_in_the_way", lambda *_, **__: set())


def loan_made_larger(patch: pytest.MonkeyPatch) -> None:
    """A front takes more than it was lent."""
    lend = Notes.lend

    def lend_more(self: Notes, loan: QuotaLoan) -> None:
        lend(self, loan._replace(quota=loan.quota * 3))

    patch.setattr(Notes, "lend", lend_more)


def used_up_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Hits are given back, and nobody tells those who know that there are none left."""
    in_the_way = lent_counters.loans_in_the_way

    def forgetful(*arguments: Any, **options: Any) -> set[tuple[CounterName, str]]:
        hits = arguments[0]
        return set() if hits[0].addend < 0 else in_the_way(*arguments, **options)

    patch.setattr(lent_counters, "loans_in_the_way", forgetful)


def loan_under_any_limit(patch: pytest.MonkeyPatch) -> None:
    """A loan is spent, or used up, whatever the rule says by now."""

    def count(self: Note, addend: int, limit: int) -> int | None:
        del limit
        if not self.has_loan or addend < 0 or (self.quota and self.spent + addend > self.quota):
            return None
        self.spent += addend
        return self.base + self.spent

    patch.setattr(Note, "count", count)


def window_ended_by_a_front(patch: pytest.MonkeyPatch) -> None:
    """It must be that late: somebody said so."""
    take = Lender._take

    def take_time(
        self: Lender, message: ToPartition, lease: Lease, wall_s: float, now_s: float
    ) -> None:
        table = self.counters.table
        for end_s in list(table._ends_at_s):
            if end_s + self._terms.skew_max_s < message.wall_s:
                table._ends_at_s[end_s] = now_s
        table.end_windows(now_s)
        take(self, message, lease, wall_s, now_s)

    patch.setattr(Lender, "_take", take_time)


def lease_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """A front that was taken for lost goes on with what it had."""

    def change_lease(self: Borrower, lease: Any, message: ToFront, now_s: float) -> None:
        del now_s, message
        self._lease = lease
        self._stream = ItemStream(self._terms)
        self._claim_item = self._told_item = 0
        self._reports.begin(self._stream)
        self._asks.begin(self._stream, [])

    patch.setattr(Borrower, "_change_lease", change_lease)


def loan_forgotten_at_home(patch: pytest.MonkeyPatch) -> None:
    """A front that asks for more forgets to say what it has spent."""
    end_loan = Notes.end_loan

    def end_unspent(self: Notes, counter: CounterName) -> int | None:
        return None if end_loan(self, counter) is None else 0

    patch.setattr(Notes, "end_loan", end_unspent)


def queue_without_end(patch: pytest.MonkeyPatch) -> None:
    """There is always room for one more who waits."""
    patch.setattr(TaskQueue, "is_full", property(lambda _: False))


def claim_of_used_slots(patch: pytest.MonkeyPatch) -> None:
    """A claim takes what others use and have loans of, for they will ask."""

    def claim(self: LentCounters, front: str, waited_for: Any) -> None:
        del waited_for
        free = [number for number, slot in enumerate(self.slots) if slot.holder is None]
        lent = [self._lend_slot(front, number, self.slots[number]) for number in free]
        self._send(front, SlotLoans(lent, False))

    patch.setattr(LentCounters, "claim", claim)


def claim_of_held_slots(patch: pytest.MonkeyPatch) -> None:
    """A claim takes whatever nobody uses, even if somebody has it."""

    def is_lendable(self: LentCounters, number: int, front: str) -> bool:
        return self.slots[number].users.keys() <= {front}

    patch.setattr(LentCounters, "is_lendable", is_lendable)


def claim_answered_twice(patch: pytest.MonkeyPatch) -> None:
    """Who claims once more is lent once more what they have."""
    claim = LentCounters.claim

    def claim_again(self: LentCounters, front: str, waited_for: Any) -> None:
        own = sorted(self.held[front].slots)
        self._send(
            front,
            SlotLoans(
                [SlotLoan(each, self.slots[each].epoch, self.table.columns(each)) for each in own],
                False,
            ),
        )
        claim(self, front, waited_for)

    patch.setattr(LentCounters, "claim", claim_again)


def asks_for_nobody(patch: pytest.MonkeyPatch) -> None:
    """What is sent once more is sent as it was."""
    patch.setattr(Asks, "as_of", lambda self, item, now_s: item)


def late_hits_not_told(patch: pytest.MonkeyPatch) -> None:
    """A front that was taken for lost keeps to itself what nobody has heard of."""
    end_all = Reports.end_all

    def end_silently(self: Reports, taken: int) -> list[Unheard]:
        end_all(self, taken)
        return []

    patch.setattr(Reports, "end_all", end_silently)


# Each with a seed that finds it.
BUGS: list[tuple[Plant, int]] = [
    (slot_returned_and_kept, 1),
    (slot_recall_lost, 3),
    (slot_lent_to_two, 4),
    (decided_after_the_term, 5),
    (term_counted_from_the_answer, 40),
    (term_cut_short, 0),
    (report_applied_twice, 3),
    (items_taken_as_they_come, 16),
    (surrender_counted_twice, 3),
    (refused_without_recall, 3),
    (admitted_without_recall, 6),
    (loan_made_larger, 6),
    (used_up_for_ever, 0),
    (loan_under_any_limit, 93),
    (window_ended_by_a_front, 1),
    (lease_not_looked_at, 3),
    (loan_forgotten_at_home, 3),
    (queue_without_end, 1),
    (claim_of_used_slots, 14),
    (claim_of_held_slots, 0),
    (claim_answered_twice, 0),
    (asks_for_nobody, 0),
    (late_hits_not_told, 94),
]
