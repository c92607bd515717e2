"""What the memo of plans keeps, and what goes first."""

from tollgate.actors.ratelimit.decision.plan import RequestPlan
from tollgate.actors.ratelimit.decision.plan_memo import PlanMemo


def plan() -> RequestPlan:
    return RequestPlan((), (), 0, "", 0, None)


class Memo:
    """A memo whose requests are numbers, asked as the planner asks."""

    def __init__(self, entries_max: int) -> None:
        self.memo = PlanMemo(entries_max)

    def asks(self, number: int) -> bool:
        """True when the plan was known; otherwise it is made and kept."""
        payload = number.to_bytes(4, "big")
        known = self.memo.recent.get(payload) or self.memo.get(payload)
        if known is None:
            self.memo.put(payload, plan())
        return known is not None

    def holds(self, number: int) -> bool:
        return self.memo.get(number.to_bytes(4, "big")) is not None


def test_what_is_asked_again_outlives_a_flood_of_what_comes_once() -> None:
    memo = Memo(100)
    often = range(40)
    for number in often:
        assert not memo.asks(number)
    for flood in range(1_000, 3_000, 10):
        for number in range(flood, flood + 10):
            assert not memo.asks(number)
        for number in often:
            assert memo.asks(number)
        assert len(memo.memo) <= 100


def test_what_came_first_and_was_not_asked_again_goes_first() -> None:
    memo = Memo(10)
    for number in range(10):
        memo.asks(number)
    memo.asks(10)  # the place of 0
    assert memo.asks(1)
    for number in (11, 12, 13):  # the places of 2, 3 and 4
        memo.asks(number)
    assert [number for number in range(14) if memo.holds(number)] == [1, *range(5, 14)]


def test_it_is_full_before_anything_goes_and_never_fuller() -> None:
    memo = Memo(7)
    for number in range(100):
        memo.asks(number)
        assert len(memo.memo) == min(number + 1, 7)
        memo.asks(number // 2)
        assert len(memo.memo) <= 7


def test_without_room_nothing_is_kept() -> None:
    memo = Memo(0)
    assert not memo.asks(1)
    assert not memo.asks(1)
    assert len(memo.memo) == 0
