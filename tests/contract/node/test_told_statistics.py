"""Statistics as lines of standard output: an answer that is late is told later, and once."""

from typing import Any

import pytest
from ray.exceptions import GetTimeoutError, RayActorError, RayError

from tollgate.actors.ratelimit.statistics.totals import Flush
from tollgate.serve.node import process
from tollgate.serve.node.process import Node
from tollgate.serve.ratelimit.wiring import RateLimitActors
from tollgate.serve.settings import Settings


class Asked:
    """An operations actor: each call is the next number."""

    def __init__(self) -> None:
        self.calls = 0
        self.flush = self.stop_sending = self

    def remote(self) -> int:
        self.calls += 1
        return self.calls


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What comes of each wait for an answer: (the call, its outcome)."""
    found: list[Any] = []

    def get(asked: int, timeout: float) -> Any:
        call, outcome = found.pop(0)
        assert asked == call
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(process.ray, "get", get)
    return found


def test_a_late_answer_is_waited_for_again(
    answers: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    node = Node(Settings.from_environment({"USE_STATSD": "false"}))
    operations = Asked()
    actors = RateLimitActors([], None, operations)
    answers += [(1, GetTimeoutError()), (1, Flush({"a": 3}, {}, {}))]
    answers += [(2, RayActorError()), (3, Flush({"a": 4}, {}, {}))]
    node._tell_statistics(actors, 1.0)
    node._tell_statistics(actors, 1.0)
    with pytest.raises(RayError):
        node._tell_statistics(actors, 1.0)
    node._tell_statistics(actors, 1.0)
    assert capsys.readouterr().out.splitlines() == [
        '{"name": "a", "type": "counter", "value": 3}',
        '{"name": "a", "type": "counter", "value": 4}',
    ]
    assert not answers


@pytest.mark.parametrize(("is_told", "calls"), [("false", 2), ("true", 1)])
def test_a_stop_has_the_last_ones_told_where_that_was_chosen(
    is_told: str, calls: int, answers: list[Any]
) -> None:
    node = Node(Settings.from_environment({"USE_STATSD": is_told}))
    operations = Asked()
    answers += [(1, Flush({}, {}, {})), (2, None)] if calls == 2 else [(1, None)]
    node._send_statistics(RateLimitActors([], None, operations))
    assert operations.calls == calls
    assert not answers


def test_a_stop_goes_on_when_nobody_answers(answers: list[Any]) -> None:
    node = Node(Settings.from_environment({}))
    answers.append((1, GetTimeoutError()))
    node._send_statistics(RateLimitActors([], None, Asked()))
