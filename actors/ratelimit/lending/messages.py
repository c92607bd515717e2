"""Messages between a front and a partition: an envelope each way, with numbered items.

The envelopes carry clocks and acknowledgements; all that changes anybody's state is an item of a
stream (see `item_stream.py`), so that it happens once and in order, whatever becomes of the
envelopes.

    front -> partition       partition -> front
    Ask                      Answer
    Claim                    SlotLoans
    Spent, Surrender, Return QuotaLoan, SlotLoan, QuotaRecall, SlotRecall
    Unheard                  Forgotten
    ToldSlots, ToldNotes, ToldAll   (after a partition has started again)

`end_s` is the end of a window in whole seconds of the epoch; counts and quotas are hits.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tollgate.actors.ratelimit.counting.counters import LimitedHits as LimitedHits

CounterName = tuple[int, bytes]
"""(end_s, key)"""

CounterColumns = tuple[int, list[bytes], list[int]]
"""(end_s, keys, counts): counters of one window, side by side."""


class Progress(NamedTuple):
    """How far somebody has got who is handed what changes in a partition.

    `change`: the number of the last one so far. `handed_out`: all until this one were handed out;
    None: that cannot be said. `reset`, `resets`: the number of the last reset that goes with these,
    and those that were asked for, with epochs in the place of counts."""

    change: int = 0
    handed_out: int | None = None
    reset: int = 0
    resets: Sequence[CounterColumns] = ()


class LimitedHit(NamedTuple):
    """One operation on one counter. `limit` None: counted in any case (B9)."""

    end_s: int
    key: bytes
    addend: int
    limit: int | None

    @property
    def counter(self) -> CounterName:
        return self.end_s, self.key


class Ask(NamedTuple):
    """Requests to count: each is counted as a whole, by B9 where `is_conditional`, else it is one
    operation. `numbers`: of the requests in the call. `wanted`: per request, the quota that the
    front could use of its counter. What cannot be counted within `patience_s` of its arrival
    is not counted."""

    call: int
    numbers: list[int]
    requests: list[list[LimitedHit]]
    wanted: list[int]
    is_conditional: bool
    patience_s: float


class Claim(NamedTuple):
    """Every slot that nobody else needs is wanted whole, ahead of the calls that will touch it."""


class Spent(NamedTuple):
    """A report: the counts of counters in slots that are lent whole, and what is spent of loans of
    quota. All are absolute, and only what has changed is there."""

    counters: list[CounterColumns]
    quotas: list[tuple[CounterName, int]]


class Surrender(NamedTuple):
    """Loans of quota that end, with what was spent of each."""

    quotas: list[tuple[CounterName, int]]


class Return(NamedTuple):
    """A slot that comes back, with the counts that have not been reported yet."""

    slot: int
    counters: list[CounterColumns]


class Unheard(NamedTuple):
    """Hits that the front had counted of its loans, and not said before they were taken back from
    it: they are to be added. The first items of a lease that follows another one."""

    counters: list[CounterColumns]


class ToldSlot(NamedTuple):
    """A slot that the front holds whole, or a part of it, for a partition that knows nothing."""

    slot: int
    epoch: int
    counters: list[CounterColumns]


class ToldSlots(NamedTuple):
    slots: list[ToldSlot]


class ToldNote(NamedTuple):
    """The front's part of a shared counter: what it has counted there, whatever way, without what
    it spends of a loan of `quota` (None: it has no loan).

    `epoch`: of the slot then; it rises whenever that is lent whole, or a counter in it is set to 0.
    `is_whole`: the front had the slot itself, so the part holds everybody's hits until then.
    `is_anew`: this counter was set to 0 with this epoch, so nobody's part of before counts."""

    counter: CounterName
    part: int
    epoch: int
    is_whole: bool
    quota: int | None
    spent: int
    limit: int
    is_anew: bool = False


class ToldNotes(NamedTuple):
    notes: list[ToldNote]


class ToldAll(NamedTuple):
    """The end of what a front tells."""


class Outcome(NamedTuple):
    """What became of one request of an Ask.

    `counts`: after each operation; None: count it at home, for the slot is lent to the front; or
    the reason why it was not counted. `counted`: what each operation has added, `epochs`: of the
    slots that it is in."""

    request: int
    counts: list[int] | str | None
    counted: list[int]
    epochs: list[int]


class Answer(NamedTuple):
    call: int
    outcomes: list[Outcome]


class SlotLoan(NamedTuple):
    """A whole slot, with all its live counters: the front may open others in it by itself."""

    slot: int
    epoch: int
    counters: list[CounterColumns]


class SlotLoans(NamedTuple):
    """The answer to a Claim. `has_more`: there are others for whoever claims once more."""

    loans: list[SlotLoan]
    has_more: bool


class QuotaLoan(NamedTuple):
    """Hits of a counter that the front may count by itself, under `limit` or a higher one.

    Quota 0: the counter is used up as far as `limit` goes, and nothing of it is out on loan.
    `base`: its count before the hits that the loan came with; `epoch`: of its slot."""

    counter: CounterName
    quota: int
    limit: int
    base: int
    epoch: int


class SlotRecall(NamedTuple):
    slot: int


class QuotaRecall(NamedTuple):
    counters: list[CounterName]


class Forgotten(NamedTuple):
    """A counter was set to 0: what the front knows of it does not count any more. `epoch`: of the
    slot since then."""

    counter: CounterName
    epoch: int


PartitionItem = Ask | Claim | Spent | Surrender | Return | Unheard | ToldSlots | ToldNotes | ToldAll
FrontItem = Answer | SlotLoan | SlotLoans | QuotaLoan | SlotRecall | QuotaRecall | Forgotten


class ToPartition(NamedTuple):
    """From a front. `front` names the process, not the machine: another one after a restart.
    (incarnation, lease): of the partition, as the front knows it; (0, 0) at first. `stamp_s`: the
    front's monotonic clock, `wall_s` its wall clock."""

    front: str
    incarnation: int
    lease: int
    stamp_s: float
    wall_s: float
    acknowledged: int
    items: list[tuple[int, PartitionItem]]


class ToFront(NamedTuple):
    """From a partition. `echo_s`: the newest stamp that has come under this lease. `is_recovering`:
    it has started again and wants to be told what the front holds. `before`: the lease that ended
    when this one began, and the last item taken of it; else (0, 0). `falls`: changes when others
    have made a count smaller, so that what was over its limit may have room again."""

    incarnation: int
    lease: int
    echo_s: float
    wall_s: float
    is_recovering: bool
    before: tuple[int, int]
    acknowledged: int
    items: list[tuple[int, FrontItem]]
    falls: int = 0
