"""No hold placed twice, no capture lost, nothing unknown once the network is back (part I)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.simulation.payments import network_world
from tests.simulation.payments.network_world import run
from tollgate.actors.ledger.law.outcomes import Done
from tollgate.serve.payments.api.routes import network_moves
from tollgate.serve.payments.network import enquiries
from tollgate.serve.payments.network.card_network import Unknown

SEEDS = 2_000
SEEDS_PER_TEST = 200
FIRSTS = range(0, SEEDS, SEEDS_PER_TEST)
Plant = Callable[[pytest.MonkeyPatch], None]


def judge(seed: int) -> network_world.World:
    try:
        world = run(seed)
        world.check()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    return world


@pytest.mark.parametrize(
    "first",
    [
        FIRSTS[0],
        *(pytest.param(first, marks=pytest.mark.repetition) for first in FIRSTS[1:]),
    ],
)
def test_nothing_is_doubled_lost_or_left_unknown(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        judge(seed)


def test_the_runs_are_worth_watching() -> None:
    worlds = [judge(seed) for seed in range(20)]
    asked = [what for world in worlds for what, _ in world.network.gateway.asked]
    assert asked.count("enquiries") > 20
    assert asked.count("reversals") > 3
    assert sum(len(world.network.gateway.done) for world in worlds) > 60
    assert any(isinstance(each.told, Done) for world in worlds for each in world.ordered)


def asks_again_at_a_repetition(patch: pytest.MonkeyPatch) -> None:
    """Whoever repeats a call wants it done."""

    async def move(context: Any, call: Any, *rest: Any) -> Done:
        call.key = ""
        return await _move(context, call, *rest)

    _move = network_moves.move
    patch.setattr(network_world, "move", move)


def books_what_is_unknown(patch: pytest.MonkeyPatch) -> None:
    """It will have been done."""

    async def carry_out(self, operation, card=None):  # type: ignore[no-untyped-def]
        answer = await _carry_out(self, operation, card)
        if isinstance(answer, Unknown):
            return network_world.NetworkApproved("a guess")
        return answer

    _carry_out = network_world.FaultyNetwork.carry_out
    patch.setattr(network_world.FaultyNetwork, "carry_out", carry_out)


def leaves_holds_that_nobody_asks_for(patch: pytest.MonkeyPatch) -> None:
    """They are declined in the books, and never reversed."""

    async def reverse(self, network, intent):  # type: ignore[no-untyped-def]
        return network_world.NetworkDeclined(self._abandoned)

    patch.setattr(enquiries.EnquiryWorker, "_reverse", reverse)


def gives_up_what_is_unknown(patch: pytest.MonkeyPatch) -> None:
    """No answer is a refusal."""

    async def carry_out(self, operation, card=None):  # type: ignore[no-untyped-def]
        answer = await _carry_out(self, operation, card)
        if isinstance(answer, Unknown):
            return network_world.NetworkDeclined(network_world.REFERENCE.errors.error(12))
        return answer

    _carry_out = network_world.FaultyNetwork.carry_out
    patch.setattr(network_world.FaultyNetwork, "carry_out", carry_out)


def enquires_once(patch: pytest.MonkeyPatch) -> None:
    """An enquiry that brings nothing is the last one."""

    async def claim(self, now_ms, count_max):  # type: ignore[no-untyped-def]
        claimed = await _claim(self, now_ms, count_max)
        return [each for each in claimed if each.attempts == 1]

    _claim = network_world.Books.claim
    patch.setattr(network_world.Books, "claim", claim)


BUGS = (
    asks_again_at_a_repetition,
    books_what_is_unknown,
    leaves_holds_that_nobody_asks_for,
    gives_up_what_is_unknown,
    enquires_once,
)


@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(_finds_something(seed) for seed in range(200))


def _finds_something(seed: int) -> bool:
    try:
        judge(seed)
    except AssertionError:
        return True
    return False
