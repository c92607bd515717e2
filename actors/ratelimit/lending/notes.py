"""What a front knows of shared counters: its loans of quota, and its own part of each count.

A note outlives its loan, for a partition that has started again adds up the parts. The oldest go
first when there are too many; never one with a loan, of which there are fewer (`loans_max`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from tollgate.actors.ratelimit.lending.messages import CounterName, QuotaLoan, ToldNote
from tollgate.actors.ratelimit.lending.terms import Terms

EARLIER_MAX = 3
FORGOTTEN_SHARE = 256
"""One of so many notes gives way at once when there are too many."""


@dataclass(slots=True)
class Note:
    """See ToldNote; `base`: the count without what is spent of the loan, as far as is known.
    `is_anew`: the counter was set to 0 with this epoch.
    `earlier`: (part, epoch, is_whole, is_anew) of a few epochs before, in case whoever had the slot
    since is lost.
    `said`: of what is spent, so much was said to the partition.
    `is_leaving`: the loan goes back with the next request, for the one before did not fit in."""

    part: int = 0
    epoch: int = 0
    is_whole: bool = False
    is_anew: bool = False
    has_loan: bool = False
    is_leaving: bool = False
    quota: int = 0
    spent: int = 0
    said: int = 0
    limit: int = 0
    base: int = 0
    earlier: list[tuple[int, int, bool, bool]] = field(default_factory=list)

    def count(self, addend: int, limit: int) -> int | None:
        """The count after an operation at home. None: the partition has to be asked.

        Within the quota whoever counts is within the limit; on a counter that is used up nobody
        is. Hits are given back where everybody sees it."""
        if self.is_leaving:
            return None
        spent = self.spent + addend
        if addend < 0:
            is_here = False
        elif self.quota:
            is_here = spent <= self.quota and self.limit <= limit and self.base + spent <= limit
        else:
            is_here = addend > 0 and limit <= self.limit
        if not is_here:
            self.is_leaving = True
            return None
        self.spent = spent
        if self.quota:
            return self.base + spent
        # The hits that it came with are missing in `base` if nobody waited for their answer.
        return max(self.base + spent, self.limit + addend)


class Notes:
    """Notes by window end and key."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._notes: dict[int, dict[bytes, Note]] = {}
        self._size = 0
        self.changed: dict[CounterName, None] = {}
        """Loans of which more is spent than was reported, in order."""

    def __len__(self) -> int:
        return self._size

    def find(self, end_s: int, key: bytes) -> Note | None:
        window = self._notes.get(end_s)
        return None if window is None else window.get(key)

    def make(self, counter: CounterName) -> Note:
        """The note of a counter, made if need be."""
        note = self.find(*counter)
        if note is None:
            if self._size >= self._terms.notes_max:
                self._make_room()
            end_s, key = counter
            note = self._notes.setdefault(end_s, {})[key] = Note()
            self._size += 1
        return note

    def lend(self, loan: QuotaLoan) -> None:
        note = self._make_of(loan.counter, loan.epoch)
        note.has_loan, note.is_leaving = True, False
        note.quota, note.limit, note.base = loan.quota, loan.limit, loan.base
        note.spent = note.said = 0

    def end_loan(self, counter: CounterName) -> int | None:
        """What was spent of a loan, which is over. None: there is none."""
        note = self.find(*counter)
        if note is None or not note.has_loan:
            return None
        note.has_loan = note.is_leaving = False
        note.part += note.spent
        self.changed.pop(counter, None)
        return note.spent

    def unsaid(self, counter: CounterName) -> int:
        """What is spent of a loan, if there is one, and was not said."""
        note = self.find(*counter)
        return note.spent - note.said if note is not None and note.has_loan else 0

    def end_all(self) -> None:
        """Every loan is over."""
        for counter in [name for name, note in self._all() if note.has_loan]:
            self.end_loan(counter)

    def loans(self) -> list[tuple[CounterName, int]]:
        """All loans, with what is spent of them."""
        return [(name, note.spent) for name, note in self._all() if note.has_loan]

    def report(
        self, quotas_max: int
    ) -> tuple[list[tuple[CounterName, int]], list[tuple[CounterName, int]]]:
        """What is spent of up to so many loans of which more is spent than was said, and the hits
        that were not said."""
        counters = list(islice(self.changed, quotas_max))
        quotas, hits = [], []
        for counter in counters:
            del self.changed[counter]
            note = self.find(*counter)
            if note is not None and note.has_loan:
                quotas.append((counter, note.spent))
                hits.append((counter, note.spent - note.said))
                note.said = note.spent
        return quotas, hits

    def add_part(self, counter: CounterName, hits: int, epoch: int) -> None:
        """The front has counted hits in the partition, in a slot of this epoch."""
        note = self._make_of(counter, epoch)
        note.part += hits
        if note.has_loan:
            note.base += hits

    def keep_whole(self, counter: CounterName, count: int, epoch: int) -> None:
        """The count of a counter whose slot was the front's own until now."""
        note = self.make(counter)
        note.part, note.epoch, note.is_whole, note.has_loan = count, epoch, True, False
        note.is_anew, note.earlier = False, []

    def begin_anew(self, counter: CounterName, epoch: int) -> None:
        """A counter was set to 0 with this epoch of its slot, and nobody has a loan of it. That is
        remembered in any case: others may not have heard of it, and tell what was before."""
        self.forget(counter)
        note = self.make(counter)
        note.epoch, note.is_anew = epoch, True

    def forget(self, counter: CounterName) -> None:
        window = self._notes.get(counter[0])
        if window is not None and window.pop(counter[1], None) is not None:
            self._size -= 1
            self.changed.pop(counter, None)
            if not window:
                del self._notes[counter[0]]

    def end_window(self, end_s: int) -> None:
        window = self._notes.pop(end_s, {})
        self._size -= len(window)
        for key in window:
            self.changed.pop((end_s, key), None)

    def told(self) -> Iterator[ToldNote]:
        """Everything, for a partition that has started again. What is spent counts as said."""
        for counter, note in self._all():
            note.said = note.spent
            for part, epoch, is_whole, is_anew in note.earlier:
                yield ToldNote(counter, part, epoch, is_whole, None, 0, 0, is_anew)
            yield ToldNote(
                counter,
                note.part,
                note.epoch,
                note.is_whole,
                note.quota if note.has_loan else None,
                note.spent,
                note.limit,
                note.is_anew,
            )

    def _make_of(self, counter: CounterName, epoch: int) -> Note:
        """The note of a counter whose slot is in this epoch."""
        note = self.make(counter)
        if note.epoch < epoch:
            # Whoever had the slot whole meanwhile has the rest of this front's part in theirs.
            note.earlier.append((note.part, note.epoch, note.is_whole, note.is_anew))
            if len(note.earlier) > EARLIER_MAX:
                self._merge_oldest(note.earlier)
            note.epoch, note.part, note.is_whole, note.is_anew = epoch, 0, False, False
        return note

    @staticmethod
    def _merge_oldest(earlier: list[tuple[int, int, bool, bool]]) -> None:
        """Make one of the two oldest, of which every incarnation of a partition brings one. A whole
        count holds what was before it, and nothing counts that was before a reset; a part goes to
        the older epoch: it may be missing then, in case somebody had the slot in between, but is
        never counted twice."""
        oldest, epoch, was_whole, was_anew = earlier[0]
        part, _, is_whole, is_anew = earlier[1]
        both = (oldest + part, epoch, was_whole, was_anew)
        earlier[:2] = [earlier[1] if is_whole or is_anew else both]

    def _all(self) -> Iterator[tuple[CounterName, Note]]:
        for end_s, window in self._notes.items():
            for key, note in window.items():
                yield (end_s, key), note

    def _make_room(self) -> None:
        """Forget the oldest, a few at once: each search goes through the places of all that was
        forgotten before."""
        forgotten_max = max(1, self._terms.notes_max // FORGOTTEN_SHARE)
        free = (counter for counter, note in self._all() if not note.has_loan)
        for counter in list(islice(free, forgotten_max)):
            self.forget(counter)
