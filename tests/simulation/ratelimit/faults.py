"""What can go wrong in a run of lending, and how often: each seed has its own mixture."""

from dataclasses import dataclass, fields, replace
from random import Random

from tollgate.actors.ratelimit.lending.terms import Terms

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Faults:
    """Chances, from 0 to 1: per message, and per second of a process or of a line. `one_way`: that
    a front which was taken for lost hears of it, and cannot be heard for a while."""

    lost: float = 0.0
    doubled: float = 0.0
    slow: float = 0.0
    crash: float = 0.0
    freeze: float = 0.0
    cut: float = 0.0
    one_way: float = 0.0
    partition_crash: float = 0.0
    partition_freeze: float = 0.0
    clock_jump: float = 0.0
    rule_change: float = 0.0
    blackout: float = 0.0
    reset: float = 0.0


NONE = Faults()
_HIGHEST = Faults(
    lost=0.1,
    doubled=0.2,
    slow=0.15,
    crash=0.2,
    freeze=0.3,
    cut=0.3,
    one_way=0.5,
    partition_crash=0.25,
    partition_freeze=0.1,
    clock_jump=0.2,
    rule_change=2.0,
    blackout=0.2,
    reset=1.0,
)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much there is of everything in a run."""

    fronts: int
    partitions: int
    keys: int
    rests_s: float
    storm_s: float


def faults_of(chance: Random) -> Faults:
    """A mixture: each kind of fault is there or not, up to its highest chance."""
    return Faults(
        **{
            kind.name: getattr(_HIGHEST, kind.name) * chance.choice((0.0, 0.0, 0.3, 1.0))
            for kind in fields(Faults)
        }
    )


def scale_of(chance: Random) -> Scale:
    fronts = chance.choice((1, 2, 2, 3, 3, 4, 6, 16))
    return Scale(
        fronts=fronts,
        partitions=chance.choice((1, 1, 1, 2, 8 if fronts < 4 else 2)),
        keys=chance.choice((2, 4, 12)),
        rests_s=chance.choice((0.02, 0.06)) * fronts,
        storm_s=chance.choice((3.0, 5.0)),
    )


def terms_of(chance: Random) -> Terms:
    """Short terms, so that much happens in a run; now and then no room for anything."""
    roomy = Terms(
        term_s=1.0,
        margin_s=0.25,
        acknowledge_s=0.05,
        resend_s=0.1,
        alone_s=chance.choice((0.2, 0.6, 3.0)),
    )
    if chance.random() < 0.7:
        return roomy
    return replace(
        roomy,
        alone_s=0.3,
        loan_span_s=chance.choice((0.1, 1.0)),
        counters_max=chance.choice((4, 12, 1_000)),
        refuses_when_full=chance.random() < 0.7,
        handed_over_max=chance.choice((0, 1, 2, 8_192)),
        loans_max=chance.choice((1, 4, 1_000)),
        reported_max=chance.choice((1, 3, 1_000)),
        deferred_max=chance.choice((1, 1_000)),
        unacknowledged_max=chance.choice((8, 1_000)),
        calls_max=chance.choice((2, 1_000)),
        rates_max=2,
    )
