"""How many calls are decided at once: by the price of those before, and by the part in a pump."""

from collections.abc import Sequence
from threading import Event
from typing import Any

import pytest

from tests.support.manual_clock import ManualClock
from tollgate.serve.ratelimit.fronts.batch_size import BUSY_S, SURE, BatchSize
from tollgate.serve.ratelimit.fronts.front import BATCH_MAX, Service, WireReply
from tollgate.serve.ratelimit.fronts.hand_over import AnswerGate
from tollgate.serve.ratelimit.fronts.native import _Pump
from tollgate.serve.ratelimit.health import Health

ENDS_WITHIN_S = 20.0


@pytest.mark.parametrize(
    ("calls", "cpu_us_each", "next_calls"),
    [
        (SURE, 8.0, 500),
        (500, 8.0, 500),
        (500, 10.0, 400),
        (SURE, 2.0, BATCH_MAX),
        (BATCH_MAX, 1_000.0, SURE),
        (BATCH_MAX, 0.0, SURE),
        # What few calls cost says nothing of many.
        (SURE - 1, 0.1, SURE),
        (1, 1_000.0, SURE),
    ],
)
def test_as_many_are_decided_as_fit(calls: int, cpu_us_each: float, next_calls: int) -> None:
    size = BatchSize()
    assert size.calls == SURE
    size.note(calls, calls * cpu_us_each / 1e6)
    assert size.calls == pytest.approx(next_calls, abs=1)
    assert cpu_us_each > 100 or size.calls * cpu_us_each / 1e6 <= BUSY_S


def test_few_calls_make_it_small_again() -> None:
    size = BatchSize()
    size.note(BATCH_MAX, 1e-4)
    assert size.calls == BATCH_MAX
    size.note(3, 1e-4)
    assert size.calls == SURE


class FullFront:
    """A native front at which BATCH_MAX calls wait, and then nobody. Remembers the answers."""

    def __init__(self) -> None:
        self.answers: dict[int, bytes] = {}
        self.is_done = Event()
        details = ((), "peer", None)
        self._turns: list[Any] = [
            None,
            [],
            [(0, number, 0, b"%d" % number, None, details) for number in range(BATCH_MAX)],
        ]

    def recv_batch_details(self, events_max: int, timeout_ms: int) -> list[Any] | None:
        if len(self._turns) == 1 and len(self.answers) < BATCH_MAX:
            return []
        turn: list[Any] | None = self._turns.pop()
        return turn

    def respond(self, call_id: int, payload: bytes) -> bool:
        self.answers[call_id] = payload
        return True


def test_the_first_of_many_do_not_wait_for_the_last() -> None:
    front, batches = FullFront(), list[int]()
    answered_before: list[int] = []

    def decide(payloads: Sequence[bytes]) -> list[WireReply]:
        answered_before.append(len(front.answers))
        batches.append(len(payloads))
        return list(payloads)

    def nothing(*_: object) -> None:
        pass

    service = Service(decide, Health(), ManualClock(), nothing, nothing, nothing)
    pump = _Pump(front, service, AnswerGate(), BATCH_MAX)  # type: ignore[arg-type]
    pump.join(ENDS_WITHIN_S)
    assert not pump.is_alive()
    assert batches[0] == SURE
    assert answered_before == [sum(batches[:number]) for number in range(len(batches))]
    assert front.answers == {number: b"%d" % number for number in range(BATCH_MAX)}
