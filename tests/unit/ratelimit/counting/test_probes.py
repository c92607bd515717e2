"""Partitions that failed are asked now and then whether they are back."""

from concurrent.futures import Future

from tests.support.manual_clock import ManualClock
from tollgate.actors.ratelimit.counting.fall_watch import Described
from tollgate.actors.ratelimit.counting.probes import INTERVAL_S, Probes


class Asked:
    """Two partitions, and the probes that were sent to the first one."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.is_full = False
        self.sent: list[Future[Described]] = []
        self.probes = Probes([self._send, lambda: None], self.clock)

    def _send(self) -> Future[Described] | None:
        if self.is_full:
            return None
        self.sent.append(Future())
        return self.sent[-1]


def test_one_that_failed_is_down_until_its_probe_is_answered() -> None:
    asked = Asked()
    assert asked.probes.is_up(0)
    asked.probes.lose(0)
    asked.probes.lose(0)
    assert (len(asked.sent), asked.probes.down) == (1, {0})
    asked.clock.advance(10)
    assert not asked.probes.is_up(0)
    assert asked.probes.is_up(1)
    asked.sent[0].set_result({})
    assert asked.probes.is_up(0)
    assert (len(asked.sent), asked.probes.down) == (1, frozenset())


def test_after_a_probe_that_failed_comes_the_next_but_not_at_once() -> None:
    asked = Asked()
    asked.probes.lose(0)
    asked.sent[0].set_exception(RuntimeError("it is away"))
    assert not asked.probes.is_up(0)
    assert len(asked.sent) == 1
    asked.clock.advance(INTERVAL_S)
    assert not asked.probes.is_up(0)
    assert len(asked.sent) == 2
    asked.sent[1].set_result({})
    assert asked.probes.is_up(0)


def test_one_that_cannot_be_asked_is_asked_later() -> None:
    asked = Asked()
    asked.is_full = True
    asked.probes.lose(0)
    assert not asked.probes.is_up(0)
    asked.is_full = False
    asked.clock.advance(INTERVAL_S)
    assert not asked.probes.is_up(0)
    asked.sent[0].set_result({})
    assert asked.probes.is_up(0)
