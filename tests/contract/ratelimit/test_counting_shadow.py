"""A shadow counts in a second place what was decided by the first, and compares; nobody hears."""

import logging
from collections.abc import Sequence
from threading import Event

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.engine import RecordedCounters, rules_from
from tests.support.ratelimit.redis_fronts import redis_front
from tests.support.servers.redis import redis_process
from tests.support.waiting import PATIENCE_S, until
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.counting.counters import CounterStore, LocalCounters
from tollgate.actors.ratelimit.counting.routes import Route
from tollgate.actors.ratelimit.decision.decider import DecidedAnswer, Decider
from tollgate.actors.ratelimit.decision.plan import Refusal
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.codec.answers import current_limit_bytes
from tollgate.serve.ratelimit.codec.messages import RequestMessage, ResponseMessage
from tollgate.serve.ratelimit.counting_shadow import shadow as shadow_module
from tollgate.serve.ratelimit.counting_shadow.comparison import ShadowOutcome
from tollgate.serve.ratelimit.counting_shadow.shadow import (
    BEGUN_WITHIN_S,
    BatchDecider,
    CountingShadow,
    ShadowedDecider,
)
from tollgate.serve.ratelimit.engine import counting_shadow
from tollgate.serve.ratelimit.replies import decoded_request, encoded_decision
from tollgate.serve.settings import Settings, SettingsError

NOW_S = 1_000_000
RULES = rules_from(
    "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {unit: hour, requests_per_unit: 3}\n"
)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take long to count what is left."""
    monkeypatch.setattr(shadow_module, "LAST_WITHIN_S", PATIENCE_S)


def request(user: str = "ann", domain: str = "shop") -> bytes:
    message = RequestMessage(domain=domain)
    entry = message.descriptors.add().entries.add()
    entry.key, entry.value = "user", user
    return bytes(message.SerializeToString())


def code(answer: DecidedAnswer) -> str:
    assert isinstance(answer, bytes), answer
    return str(ResponseMessage.Code.Name(ResponseMessage.FromString(answer).overall_code))


def decider_over(
    store: CounterStore,
    clock: ManualClock,
    policy: Policy = Policy(),  # noqa: B008 (it is frozen)
    route: Route | None = None,
) -> Decider:
    decider = Decider(
        policy=policy,
        store=store,
        tallies=Tallies("test"),
        clock=clock,
        decode=decoded_request,
        render_limit=current_limit_bytes,
        encode=encoded_decision,
        route=route,
    )
    decider.use_rules(RULES)
    return decider


class Place:
    """Counters, a decider over them, and whether they were let go of."""

    def __init__(self) -> None:
        self.counters = RecordedCounters()
        self.has_begun = True
        self.is_closed = False
        self.decider = decider_over(self.counters, ManualClock(NOW_S))

    def close(self) -> None:
        self.is_closed = True


class Pair:
    """A place that decides, and its shadow."""

    def __init__(self) -> None:
        self.first, self.second = Place(), Place()
        self.tallies = Tallies("front")
        self.totals: dict[str, int] = {}
        self.clock = ManualClock(NOW_S)
        self.shadow = CountingShadow(
            self.second.decider,
            self.second,
            "the other place",
            decoded_request,
            self.clock,
            self.tallies.count,
        )
        self.decider = ShadowedDecider(self.first.decider, self.shadow)

    def decide(self, *payloads: bytes) -> list[DecidedAnswer]:
        return self.decider.decide_batch(payloads)

    def counted(self, outcome: ShadowOutcome) -> int:
        for name, by in self.tallies.drain().counts.items():
            self.totals[name] = self.totals.get(name, 0) + by
        return self.totals[outcome.value]

    def stop(self) -> dict[ShadowOutcome, int]:
        """The outcomes that were met, once everything that waited was counted."""
        self.shadow.stop()
        counts = {outcome: self.counted(outcome) for outcome in ShadowOutcome}
        assert self.totals.keys() == {outcome.value for outcome in ShadowOutcome}
        return {outcome: count for outcome, count in counts.items() if count}


def test_two_places_that_count_the_same_agree() -> None:
    pair = Pair()
    pair.shadow.start()
    codes = [code(answer) for _ in range(5) for answer in pair.decide(request())]
    assert codes == ["OK"] * 3 + ["OVER_LIMIT"] * 2
    assert pair.stop() == {ShadowOutcome.AGREES: 5}
    assert pair.second.is_closed
    assert pair.second.counters.counts(NOW_S) == pair.first.counters.counts(NOW_S)


def test_a_place_that_has_counted_more_differs_first_in_what_remains_and_then_in_the_code(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pair = Pair()
    pair.second.decider.decide_batch([request(), request()])
    pair.shadow.start()
    with caplog.at_level(logging.WARNING):
        answers = [pair.decide(request("ann"))[0], pair.decide(request("ann"))[0]]
        found = pair.stop()
    assert [code(answer) for answer in answers] == ["OK", "OK"], "the first place decides"
    assert found == {ShadowOutcome.REMAINING_DIFFERS: 1, ShadowOutcome.CODE_DIFFERS: 1}
    (line,) = [each.getMessage() for each in caplog.records]
    assert "the other place" in line
    assert "shop" in line
    assert "ann" in line
    assert "were OVER_LIMIT with 0 left" in line
    assert "was OK with 1 left" in line


def test_a_place_out_of_reach_is_told_apart_and_changes_no_answer() -> None:
    pair = Pair()
    pair.second.counters.unreachable[0] = "gone"
    pair.shadow.start()
    assert code(pair.decide(request())[0]) == "OK"
    assert pair.stop() == {ShadowOutcome.UNREACHABLE: 1}


def test_what_comes_before_the_place_was_reached_is_counted_there_all_the_same() -> None:
    pair = Pair()
    pair.second.has_begun = False
    pair.shadow.start()
    pair.decide(request())
    pair.decide(request())
    assert pair.second.counters.counts(NOW_S) == {}
    pair.second.has_begun = True
    until(lambda: pair.counted(ShadowOutcome.AGREES) == 2, "both are counted")
    assert pair.stop() == {ShadowOutcome.AGREES: 2}


def test_a_place_that_is_never_reached_is_waited_for_once() -> None:
    pair = Pair()
    pair.second.has_begun = False
    pair.second.counters.unreachable[0] = "gone"
    pair.shadow.start()
    pair.decide(request())
    pair.clock.advance(BEGUN_WITHIN_S)
    until(lambda: pair.counted(ShadowOutcome.UNREACHABLE) == 1, "it is out of reach")
    pair.decide(request())
    assert pair.stop() == {ShadowOutcome.UNREACHABLE: 2}


def test_what_is_refused_is_not_compared() -> None:
    pair = Pair()
    pair.shadow.start()
    (answer,) = pair.decide(b"\xff")
    assert isinstance(answer, Refusal)
    assert pair.stop() == {}


def test_a_place_that_hangs_holds_nobody_up_and_what_waits_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shadow_module, "WAITING_CALLS_MAX", 10)
    pair = Pair()
    is_asked, may_go_on = Event(), Event()
    decide = pair.second.decider.decide_batch

    def hang(payloads: Sequence[bytes]) -> list[DecidedAnswer]:
        is_asked.set()
        may_go_on.wait()
        return decide(payloads)

    monkeypatch.setattr(pair.second.decider, "decide_batch", hang)
    pair.shadow.start()
    pair.decide(request("first"))
    assert is_asked.wait(PATIENCE_S)
    for number in range(15):
        assert code(pair.decide(request(f"user {number}"))[0]) == "OK"
    assert pair.counted(ShadowOutcome.DROPPED) == 5
    may_go_on.set()
    assert pair.stop() == {ShadowOutcome.AGREES: 11, ShadowOutcome.DROPPED: 5}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_shadow_that_fails_is_said_and_holds_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pair = Pair()

    def fail(payloads: Sequence[bytes]) -> list[DecidedAnswer]:
        raise ValueError("an error that nobody foresaw")

    monkeypatch.setattr(pair.second.decider, "decide_batch", fail)
    pair.shadow.start()
    assert code(pair.decide(request())[0]) == "OK"
    until(lambda: "any more" in caplog.text, "the end is said")
    assert code(pair.decide(request())[0]) == "OK"
    until(
        lambda: pair.decide(request()) and pair.counted(ShadowOutcome.DROPPED) > 0,
        "what comes is dropped",
    )
    pair.stop()
    assert pair.second.is_closed


def test_large_requests_fill_the_room_as_many_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow_module, "WAITING_BYTES_MAX", 8_500)
    pair = Pair()
    pair.decide(request("x" * 4_000))
    pair.decide(request("y" * 4_000))
    pair.decide(request("z" * 4_000))
    assert pair.counted(ShadowOutcome.DROPPED) == 1
    pair.shadow.start()
    assert pair.stop() == {ShadowOutcome.AGREES: 2, ShadowOutcome.DROPPED: 1}


def test_the_shadow_goes_by_its_own_rules() -> None:
    pair = Pair()
    pair.shadow.use_rules(rules_from("domain: other\n"))
    pair.shadow.start()
    pair.decide(request())
    assert pair.stop() == {ShadowOutcome.REMAINING_DIFFERS: 1}


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({"COUNTING_SHADOW": "actors"}, "COUNTING_SHADOW: actors decides already"),
        (
            {"COUNTING_SHADOW": "redis", "REDIS_URL": "localhost:6379"},
            "COUNTING_SHADOW: kvstore decides already",
        ),
        (
            {"COUNTING_SHADOW": "memcache"},
            "ALTCACHE_HOST_PORT: is not set, but BACKEND_TYPE needs it",
        ),
        ({"COUNTING_SHADOW": "else"}, "is not one of none"),
    ],
)
def test_a_shadow_that_cannot_be_is_refused(environment: dict[str, str], line: str) -> None:
    with pytest.raises(SettingsError, match=line):
        Settings.from_environment(environment)


def test_a_shadow_in_redis_counts_under_the_names_that_both_services_know() -> None:
    with redis_process() as server:
        settings = Settings.from_environment(
            {
                "BACKEND_TYPE": "actors",
                "COUNTING_SHADOW": "redis",
                "REDIS_URL": server.address,
                "REDIS_STARTUP_INITIAL_INTERVAL": "20ms",
                "FAILURE_MODE": "allow",
            }
        )
        clock, tallies = SystemClock(), Tallies("front")
        shadow = counting_shadow(settings, [], clock, tallies)
        assert shadow is not None
        shadow.use_rules(RULES)
        place = Place()
        decider = ShadowedDecider(place.decider, shadow)
        shadow.start()
        # (Redis is not reached yet)
        codes = [code(decider.decide_batch([request()])[0]) for _ in range(5)]
        assert codes == ["OK"] * 3 + ["OVER_LIMIT"] * 2
        shadow.stop()
        (name,) = server.client.keys()
        assert name.startswith(b"shop_user_ann_")
        assert server.client.get(name) == b"5"
        counts = tallies.drain().counts
        assert {each: counts[each.value] for each in ShadowOutcome if counts[each.value]} == {
            ShadowOutcome.AGREES: 5
        }


HOUR_S = 3_600
BEGAN_S = 1_000_000 // HOUR_S * HOUR_S


def test_a_move_to_own_counters_and_back_admits_what_one_place_would() -> None:
    with redis_process() as server, redis_front(REDIS_URL=server.address) as front:
        clock = ManualClock(BEGAN_S)
        outside = Policy(has_outside_counters=True)
        in_redis = decider_over(front.counters, clock, outside, front.route)
        own = decider_over(LocalCounters(2), clock)  # (as journals have them after a start)
        many = rules_from(
            "domain: shop\n"
            "descriptors:\n"
            "- key: user\n"
            "  rate_limit: {unit: hour, requests_per_unit: 100}\n"
        )
        in_redis.use_rules(many)
        own.use_rules(many)

        def admitted(first: Decider, second: Decider | None, hits: int) -> int:
            decide: BatchDecider = first
            if second is not None:
                kept = Place()
                shadow = CountingShadow(
                    second, kept, "beside", decoded_request, clock, lambda _what, _by: None
                )
                shadow.start()
                decide = ShadowedDecider(first, shadow)
            codes = [code(decide.decide_batch([request()])[0]) for _ in range(hits)]
            if second is not None:
                shadow.stop()
            return codes.count("OK")

        # The reference has counted before, and goes on beside in the same Redis.
        name = b"shop_user_ann_%d" % BEGAN_S
        server.client.incrby(name, 10)
        assert admitted(in_redis, None, 20) == 20
        server.client.incrby(name, 5)
        assert admitted(in_redis, own, 75) == 65
        # A window that both have counted from its beginning.
        clock.advance(HOUR_S)
        found = [admitted(in_redis, own, 20), admitted(own, in_redis, 30), admitted(own, None, 0)]
        assert found == [20, 30, 0]
        assert admitted(in_redis, own, 60) == 50
        assert admitted(own, in_redis, 1) == 0
