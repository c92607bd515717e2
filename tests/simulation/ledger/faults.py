"""What can go wrong in a run, and how often: each seed has its own mixture, and some have none."""

from dataclasses import dataclass, fields
from random import Random


@dataclass(frozen=True, slots=True)
class Faults:
    """Chances, from 0 to 1: per step of a process, per message, per commit, per call."""

    crash: float = 0.0
    pause: float = 0.0
    partition: float = 0.0
    clock_jump: float = 0.0
    lost_request: float = 0.0
    lost_reply: float = 0.0
    duplicate: float = 0.0
    not_sent: float = 0.0
    commit_unknown: float = 0.0
    commit_late: float = 0.0
    disk_full: float = 0.0
    hang_up: float = 0.0


NONE = Faults()
_HIGHEST = Faults(
    crash=0.02,
    pause=0.02,
    partition=0.1,
    clock_jump=0.03,
    lost_request=0.1,
    lost_reply=0.15,
    duplicate=0.4,
    not_sent=0.1,
    commit_unknown=0.1,
    commit_late=0.1,
    disk_full=0.03,
    hang_up=0.1,
)


def faults_of(chance: Random) -> Faults:
    """A mixture: each kind of fault is there or not, up to its highest chance."""
    return Faults(
        **{
            kind.name: getattr(_HIGHEST, kind.name) * chance.choice((0.0, 0.0, 0.3, 1.0))
            for kind in fields(Faults)
        }
    )
