"""The terms of lending: times, bounds and slots that both sides keep to.

A front decides from its loans until `term_s` after it sent the last message that the partition has
answered. The partition takes them back unasked `term_s + margin_s` after that message came. It came
after it was sent, so a front has always stopped before anybody else starts.
"""

from dataclasses import dataclass

from tollgate.actors.kernel.hashing import stable_hash

SLOTS = 256
"""The slots of a partition. Never changed while anything runs: both sides compute a key's slot."""
_SHIFT = 64 - (SLOTS - 1).bit_length()


def slot_of(key: bytes) -> int:
    """The slot of a counter's key: the hash's highest bits, as partitions go by the lowest."""
    return stable_hash(key) >> _SHIFT


@dataclass(frozen=True, slots=True)
class Terms:
    """Times in seconds of a monotonic clock, but for `skew_max_s`, and the maxima of all that is
    kept.

    The defaults are a node's; tests make them smaller.
    """

    term_s: float = 2.0
    margin_s: float = 0.5
    skew_max_s: float = 5.0
    """How far the wall clocks of a front and a partition may be apart."""
    report_every_s: float = 0.05
    acknowledge_s: float = 0.2
    """After so long, a front says what has reached it, if it had nothing else to say meanwhile."""
    resend_s: float = 0.5
    """After so long, what was not acknowledged is sent once more."""
    alone_s: float = 3.0
    """A slot goes back whole to a front that was its only user for so long."""
    claim_every_s: float = 3.0
    """A front that has not got all slots claims the rest anew after so long."""
    loan_span_s: float = 0.25
    """A loan of quota is what the front spends in this time."""
    loan_min: int = 2
    """A smaller loan of quota is not worth a message: the hits are counted one call at a time."""
    recovery_max_s: float = 10.0
    """A partition that has started again waits no longer for fronts that are still telling."""
    counters_max: int = 1_000_000
    """In a partition, and in a front of one partition."""
    refuses_when_full: bool = False
    """Whether a full table refuses new counters, or evicts the least recently used."""
    handed_over_max: int = 8_192
    """A slot with more counters is not lent whole."""
    claimed_max: int = 2_048
    """Counters handed over at once for a claim; the first slot's go in any case."""
    fronts_max: int = 2_048
    loans_max: int = 65_536
    """Loans of quota per front and partition."""
    notes_max: int = 262_144
    """Shared counters that a front remembers its own part of."""
    reported_max: int = 4_096
    """Counters in one report, or in one part of what is told after a restart."""
    deferred_max: int = 4_096
    """Requests that wait in a partition for loans to come back."""
    unacknowledged_max: int = 4_096
    """Items of one stream that the other side has not acknowledged."""
    items_per_message_max: int = 64
    calls_max: int = 1_024
    """Batches of a front that wait for one partition."""
    unheard_max: int = 65_536
    """Counters whose late hits wait in a partition for somebody else who has them by then."""
    rates_max: int = 65_536
    """Counters whose rate of spending a front remembers."""
