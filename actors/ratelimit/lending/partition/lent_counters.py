"""The counters of a partition and who has them: counts here what is here, lends, and takes back.

A slot that one front alone has used of late is lent to it whole. A slot that several use is counted
here, and what they spend fast is lent to them by the counter (see `loans.py`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from math import inf

from tollgate.actors.ratelimit.counting.counters import (
    TABLE_FULL,
    Conditional,
    conditional_addends,
)
from tollgate.actors.ratelimit.lending.messages import (
    CounterColumns,
    CounterName,
    FrontItem,
    LimitedHit,
    Outcome,
    QuotaLoan,
    QuotaRecall,
    SlotLoan,
    SlotLoans,
    SlotRecall,
)
from tollgate.actors.ratelimit.lending.partition.late_hits import LateHits
from tollgate.actors.ratelimit.lending.partition.loans import (
    Held,
    Loan,
    Slot,
    counted_and_reserved,
    loans_in_the_way,
    lowest_limit,
)
from tollgate.actors.ratelimit.lending.partition.resets import Resets
from tollgate.actors.ratelimit.lending.partition.slot_table import Names, SlotTable, side_by_side
from tollgate.actors.ratelimit.lending.partition.tasks import Task
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms, slot_of

Send = Callable[[str, FrontItem], object]


class LentCounters:
    """Counters, slots and loans of one partition. `send` puts an item on its way to a front.

    `first_epoch`: of all slots; above any epoch of an earlier incarnation."""

    def __init__(
        self, terms: Terms, send: Send, *, first_epoch: int = 0, keeps_changes: bool = False
    ) -> None:
        self._terms = terms
        self._send = send
        self.table = SlotTable(terms, keeps_changes=keeps_changes)
        self.late = LateHits(terms)
        self.resets = Resets(terms.unheard_max)
        self.slots = [Slot(epoch=first_epoch) for _ in range(SLOTS)]
        self.held: dict[str, Held] = defaultdict(Held)

    # Counting

    def attempt(self, task: Task, now_s: float) -> Outcome | None:
        """Count a task. None: it has to wait, and what it waits for has been called back."""
        slots = [self.slots[slot_of(hit.key)] for hit in task.hits]
        if all(slot.holder == task.front and not slot.is_recalled for slot in slots):
            return Outcome(task.request, None, [], [])
        away = [(hit, slot) for hit, slot in zip(task.hits, slots, strict=True) if slot.holder]
        for hit, slot in away:
            self._recall_slot(slot_of(hit.key), slot)
        if away:
            return None
        if self._recall_in_the_way(task, slots):
            return None
        if not all(self._has_room_for(hit) for hit in task.hits):
            return Outcome(task.request, TABLE_FULL, [], [])
        counts, counted = self._count(task, slots)
        before = [count - added for count, added in zip(counts, counted, strict=True)]
        self._use(task, slots, before, now_s)
        return Outcome(task.request, counts, counted, [slot.epoch for slot in slots])

    def _recall_in_the_way(self, task: Task, slots: list[Slot]) -> bool:
        loans = [slot.loans.get(hit.counter) for hit, slot in zip(task.hits, slots, strict=True)]
        if not any(loans):
            return False
        own = [self.table.count(slot_of(hit.key), hit.end_s, hit.key) for hit in task.hits]
        in_the_way = loans_in_the_way(
            task.hits, own, [each or {} for each in loans], is_conditional=task.is_conditional
        )
        self._recall(in_the_way)
        return bool(in_the_way)

    def _count(self, task: Task, slots: list[Slot]) -> tuple[list[int], list[int]]:
        """Counts after each hit, and what each has added."""
        addends = [hit.addend for hit in task.hits]
        if task.is_conditional:
            before = {
                hit.key: self._counted(hit, slot)
                for hit, slot in zip(task.hits, slots, strict=True)
            }
            columns = Conditional(
                [hit.end_s for hit in task.hits],
                [hit.key for hit in task.hits],
                addends,
                [hit.limit for hit in task.hits],
            )
            addends = conditional_addends(before, columns)
        counts, counted = [], []
        for hit, slot, addend in zip(task.hits, slots, addends, strict=True):
            count = self._counted(hit, slot)
            added = max(addend, -count)
            self.table.add(slot_of(hit.key), hit.end_s, hit.key, added)
            counts.append(count + added)
            counted.append(added)
        return counts, counted

    def _counted(self, hit: LimitedHit, slot: Slot) -> int:
        own = self.table.count(slot_of(hit.key), hit.end_s, hit.key)
        loans = slot.loans.get(hit.counter)
        return own if loans is None else counted_and_reserved(own, loans)[0]

    def _has_room_for(self, hit: LimitedHit) -> bool:
        return hit.addend <= 0 or self.table.has_room_for(slot_of(hit.key), hit.end_s, hit.key)

    def _use(self, task: Task, slots: list[Slot], before: list[int], now_s: float) -> None:
        """Note who uses the slots; lend quota of those that others use, too."""
        for hit, slot, count in zip(task.hits, slots, before, strict=True):
            is_alone = slot.use(task.front, now_s, self._terms.alone_s)
            if is_alone and self._is_small(slot_of(hit.key)):
                continue  # (it is lent whole)
            if not task.is_conditional and hit.addend > 0 and hit.limit is not None:
                self._lend_quota(task, hit, slot, count, hit.limit)

    def _is_small(self, slot: int) -> bool:
        return self.table.size_of(slot) <= self._terms.handed_over_max

    # Lending

    def _lend_quota(self, task: Task, hit: LimitedHit, slot: Slot, before: int, limit: int) -> None:
        loans = slot.loans.get(hit.counter, {})
        if task.front in loans:
            return
        own = self.table.count(slot_of(hit.key), hit.end_s, hit.key)
        counted, reserved = counted_and_reserved(own, loans)
        room = lowest_limit(limit, loans) - counted - reserved
        quota = min(task.wanted, room // (2 * (len(loans) + 1)))
        is_used_up = counted >= limit and not reserved
        if quota < self._terms.loan_min and not is_used_up:
            return
        held = self.held[task.front]
        if len(held.loans) >= self._terms.loans_max:
            oldest = next(iter(held.loans))
            self._recall({(oldest, task.front)})
            return
        quota = 0 if is_used_up else quota
        slot.loans.setdefault(hit.counter, {})[task.front] = Loan(quota, limit)
        held.loans[hit.counter] = slot
        self._send(task.front, QuotaLoan(hit.counter, quota, limit, before, slot.epoch))

    def lend_slots(self, front: str, slots: Iterable[int], waited_for: set[CounterName]) -> None:
        """Lend those slots whole that the front alone uses, and nobody waits for."""
        waiting = {slot_of(key) for _, key in waited_for}
        for number in slots:
            slot = self.slots[number]
            if slot.holder is None and number not in waiting and self._is_ready(number, front):
                self._send(front, self._lend_slot(front, number, slot))

    def _lend_slot(self, front: str, number: int, slot: Slot) -> SlotLoan:
        slot.holder = front
        slot.epoch += 1
        self.held[front].slots.add(number)
        return SlotLoan(number, slot.epoch, self.table.columns(number))

    def claim(self, front: str, waited_for: set[CounterName]) -> None:
        """Lend all slots whole that no other front uses or has loans of: as many as may be handed
        over at once. Those with loans of the front's own wait for them, and for its next claim."""
        waiting = {slot_of(key) for _, key in waited_for}
        lent: list[SlotLoan] = []
        own: set[tuple[CounterName, str]] = set()
        room, has_more = self._terms.claimed_max, False
        for number, slot in enumerate(self.slots):
            if number in waiting or not self.is_lendable(number, front):
                continue
            if slot.loans:
                if len(own) < self._terms.reported_max and all(
                    loans.keys() == {front} for loans in slot.loans.values()
                ):
                    own |= {(counter, front) for counter in slot.loans}
                continue
            room -= self.table.size_of(number)
            if lent and room < 0:
                has_more = True
                break
            lent.append(self._lend_slot(front, number, slot))
        self._recall(own)
        if lent:
            self._send(front, SlotLoans(lent, has_more))

    def is_lendable(self, number: int, front: str) -> bool:
        """Whether the front alone has used the slot in a live window, or of late, and it can be
        handed over."""
        slot = self.slots[number]
        is_theirs = slot.users.keys() <= {front} or not self.table.size_of(number)
        return slot.holder is None and is_theirs and self._is_small(number)

    def _is_ready(self, number: int, front: str) -> bool:
        if not self.is_lendable(number, front):
            return False
        loans = self.slots[number].loans
        self._recall({(counter, each) for counter, lent in loans.items() for each in lent})
        return not loans

    # Calling back

    def _recall_slot(self, number: int, slot: Slot) -> None:
        if not slot.is_recalled:
            assert slot.holder is not None, "only what is lent is called back"
            slot.is_recalled = True
            self._send(slot.holder, SlotRecall(number))

    def _recall(self, loans: set[tuple[CounterName, str]]) -> None:
        by_front: dict[str, list[CounterName]] = defaultdict(list)
        for counter, front in sorted(loans):
            loan = self.held[front].loans[counter].loans[counter][front]
            if not loan.is_recalled:
                loan.is_recalled = True
                by_front[front].append(counter)
        for front, counters in by_front.items():
            self._send(front, QuotaRecall(counters))

    # Taking back

    def reset(self, counter: CounterName, now_s: float) -> bool:
        """Set a counter to 0, as soon as nobody has it. False: it has been called back."""
        number = slot_of(counter[1])
        slot = self.slots[number]
        if slot.holder is not None:
            self._recall_slot(number, slot)
            return False
        if counter in slot.loans:
            self._recall({(counter, front) for front in slot.loans[counter]})
            return False
        slot.epoch += 1
        self.begin_anew(counter, slot.epoch, now_s)
        return True

    def begin_anew(self, counter: CounterName, epoch: int, at_s: float = -inf) -> None:
        """Nothing counts that was before this epoch."""
        number = slot_of(counter[1])
        if self.table.count(number, *counter):
            self.table.put(number, *counter, 0)
        self.resets.note(counter, epoch, at_s)

    def report(
        self,
        front: str,
        counters: list[CounterColumns],
        quotas: list[tuple[CounterName, int]],
    ) -> None:
        """Note what a front has counted at home."""
        for end_s, keys, counts in counters:
            for key, count in zip(keys, counts, strict=True):
                number = slot_of(key)
                if self.slots[number].holder == front:
                    self.table.put(number, end_s, key, count)
        for counter, spent in quotas:
            slot = self.held[front].loans.get(counter)
            if slot is not None:
                slot.loans[counter][front].spent = spent
                self.table.note_change(*counter)

    def end_loan(self, front: str, counter: CounterName, spent: int | None = None) -> int:
        """End a loan of quota: what was spent of it (None: what was reported) is counted here."""
        slot = self.held[front].loans.pop(counter, None)
        if slot is None:
            return 0
        loan = slot.loans[counter].pop(front)
        if not slot.loans[counter]:
            del slot.loans[counter]
        spent = loan.spent if spent is None else spent
        self.table.add(slot_of(counter[1]), *counter, spent)
        return spent

    def take_back(self, front: str, number: int, now_s: float) -> None:
        """End the loan of a whole slot."""
        slot = self.slots[number]
        if slot.holder == front:
            self.held[front].slots.discard(number)
            slot.holder = None
            slot.is_recalled = False
            slot.users = {front: now_s}
            for counter, hits in self.late.take(number).items():
                self._add(counter, hits)

    def add_late(self, counters: list[CounterColumns], since_s: float) -> None:
        """Count what a front had counted at home when all that it had was taken back from it."""
        for end_s, keys, numbers in counters:
            for key, hits in zip(keys, numbers, strict=True):
                counter = (end_s, key)
                number = slot_of(key)
                if self.resets.is_void(counter, since_s):
                    continue
                if self.slots[number].holder is None:
                    self._add(counter, hits)
                else:
                    self.late.put(number, counter, hits)
                    self._recall_slot(number, self.slots[number])

    def _add(self, counter: CounterName, hits: int) -> None:
        """Add hits, or give some back, to a counter that nobody has whole."""
        number = slot_of(counter[1])
        self.table.add(number, *counter, max(hits, -self.known(*counter)))
        if hits < 0:
            # Who knows of a counter that is used up does not know of this.
            self._recall({(counter, front) for front in self.slots[number].loans.get(counter, ())})

    def lapse(self, front: str) -> None:
        """End all loans of a front that is not there any more."""
        held = self.held[front]
        for number in list(held.slots):
            self.take_back(front, number, 0.0)
        for counter in list(held.loans):
            self.end_loan(front, counter)
        for slot in self.slots:
            slot.users.pop(front, None)
        del self.held[front]

    # What is known

    def known(self, end_s: int, key: bytes) -> int:
        """The hits of a counter, with all that is reported to be spent of its loans."""
        number = slot_of(key)
        own = self.table.count(number, end_s, key)
        loans = self.slots[number].loans.get((end_s, key))
        return own if loans is None else counted_and_reserved(own, loans)[0]

    def columns(self, number: int) -> list[CounterColumns]:
        """All counters of a slot, as far as is known."""
        lent = self.slots[number].loans
        columns = self.table.columns(number)
        if not lent:
            return columns
        counts = {(end_s, key): n for end_s, *each in columns for key, n in zip(*each, strict=True)}
        for end_s, key in lent:
            counts[end_s, key] = self.known(end_s, key)
        return side_by_side(counts)

    def has(self, number: int, end_s: int, key: bytes) -> bool:
        """Whether something is known of a counter."""
        lent = self.slots[number].loans
        return self.table.has(number, end_s, key) or (end_s, key) in lent

    def names(self, number: int) -> Names:
        """The names of a slot's counters, to be read before anything changes."""
        names = self.table.names(number)
        missing: dict[int, set[bytes]] = defaultdict(set)
        for end_s, key in self.slots[number].loans:
            if not self.table.has(number, end_s, key):
                missing[end_s].add(key)
        return [*names, *missing.items()]

    def as_known(self, names: list[tuple[int, list[bytes]]]) -> list[CounterColumns]:
        """The counters of these names, as far as is known."""
        return [(end_s, keys, [self.known(end_s, key) for key in keys]) for end_s, keys in names]

    # Starting again

    def raise_to(self, counter: CounterName, count: int) -> None:
        """Believe that so much was counted here at least, beside all loans."""
        end_s, key = counter
        number = slot_of(key)
        if count > self.table.count(number, end_s, key):
            self.table.put(number, end_s, key, count)

    def end_windows(self, now_s: float) -> set[int]:
        """Forget windows that have ended, with all their loans; which they are."""
        ended = set(self.table.end_windows(now_s))
        for end_s in ended:
            self.resets.end_window(end_s)
        if ended:
            for held in self.held.values():
                for counter in [each for each in held.loans if each[0] in ended]:
                    loans = held.loans.pop(counter).loans
                    loans.pop(counter, None)
        return ended
