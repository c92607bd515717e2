"""Every decision case over the wire, through both fronts (docs/ratelimit.md, 3C to 3F).

The caller is a real gRPC client with the published message classes; what it reads from the reply is
compared in the notation of the cases, headers and metadata too.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format

from tests.conformance.ratelimit.decision_cases import Case, Step, cases, request
from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.engine import RecordedCounters, rules_from
from tests.support.ratelimit.grpc_peers import PATIENCE_S, Caller, World
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.counters import CounterStore, LocalCounters
from tollgate.actors.ratelimit.decision.decider import Decider
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.rules.descriptors import RateLimitDescriptor, RateLimitRequest
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.codec.answers import current_limit_bytes
from tollgate.serve.ratelimit.codec.messages import RequestMessage, ResponseMessage
from tollgate.serve.ratelimit.fronts.front import WireReply
from tollgate.serve.ratelimit.replies import decoded_request, encoded_decision, wire_answers

CASES = list(cases(Path(__file__).parents[2] / "conformance/ratelimit/decisions"))
REMAINING_UNLIMITED = 4294967295


def wire_decider(policy: Policy, store: CounterStore, clock: Clock) -> Decider:
    """A decider that reads and writes what goes over the wire."""
    return Decider(
        policy=policy,
        store=store,
        tallies=Tallies("test"),
        clock=clock,
        decode=decoded_request,
        render_limit=current_limit_bytes,
        encode=encoded_decision,
    )


class WireRun:
    """One case being run against a door."""

    def __init__(self, case: Case, world: World, peer: Caller) -> None:
        self._clock = ManualClock(1_000_000)
        self._store = RecordedCounters(2)
        self._peer = peer
        self._decider = wire_decider(case.policy, self._store, self._clock)
        if case.rules is not None:
            self._decider.use_rules(rules_from(case.rules))
        world.decisions.answer = self._answers

    def _answers(self, payloads: Sequence[bytes]) -> list[WireReply]:
        return wire_answers(self._decider, is_precise=False)(payloads)

    def step(self, step: Step) -> None:
        if "at" in step:
            self._clock.set(step["at"])
        if "store" in step:
            error: str = step["store"]
            self._store.unreachable = dict.fromkeys(range(2 if error else 0), error)
        if "reload" in step:
            self._decider.use_rules(rules_from(step["reload"]))
        if "preload" in step:
            self._ask(request(step["preload"]))
        answers = step.get("answers", [step.get("answer")] * step.get("times", 1))
        for expected in answers if "ask" in step else ():
            assert self._shown(step, expected) == expected

    def _ask(self, asked: RateLimitRequest) -> Any:
        reply = self._peer.decide(message_of(asked), timeout=PATIENCE_S)
        return ResponseMessage.FromString(reply)

    def _shown(self, step: Step, expected: str) -> str:
        try:
            reply = self._ask(request(step["ask"]))
        except grpc.RpcError as error:
            # UNKNOWN is the reference's own code for every refusal (F01, F02, F04).
            is_as_expected = error.code() is grpc.StatusCode.UNKNOWN
            return f"{'refused' if is_as_expected else error.code()}: {error.details()}"
        headers = [(header.key, header.value) for header in reply.response_headers_to_add]
        if "headers" in step:
            assert headers == list(step["headers"].items())
        if "metadata" in step:
            has_metadata = reply.HasField("dynamic_metadata")
            metadata = json_format.MessageToDict(reply.dynamic_metadata) if has_metadata else None
            assert metadata == step["metadata"]
        return shown(reply, expected)


def message_of(asked: RateLimitRequest) -> bytes:
    """The request as the published classes serialise it."""
    message = RequestMessage(domain=asked.domain, hits_addend=asked.hits_addend)
    for descriptor in asked.descriptors:
        added = message.descriptors.add(is_negative_hits=descriptor.is_negative_hits)
        for key, value in descriptor.entries:
            added.entries.add(key=key, value=value)
        if descriptor.override is not None:
            added.limit.requests_per_unit = descriptor.override.requests_per_unit
            added.limit.unit = descriptor.override.unit or 0
        if descriptor.hits_addend is not None:
            added.hits_addend.value = descriptor.hits_addend
    return bytes(message.SerializeToString())


def shown(reply: Any, expected: str) -> str:
    """The reply in the notation of the cases, with as much detail as what is expected."""
    wanted = expected.partition(": ")[2].split(", ")
    wanted += [""] * (len(reply.statuses) - len(wanted))
    statuses = [_status(s, w) for s, w in zip(reply.statuses, wanted, strict=False)]
    return f"{_code(reply.overall_code)}: {', '.join(statuses)}"


def _status(status: Any, wanted: str) -> str:
    if not status.HasField("current_limit"):
        assert not status.HasField("duration_until_reset"), "no reset without a limit"
        return "unlimited" if status.limit_remaining == REMAINING_UNLIMITED else "none"
    limit = status.current_limit
    details = {
        "r": status.limit_remaining,
        "limit": f"{limit.requests_per_unit}/{limit.Unit.Name(limit.unit)}",
        "name": limit.name,
        "reset": status.duration_until_reset.seconds,
    }
    keys = [word.partition("=")[0] for word in wanted.split() if "=" in word]
    return " ".join([_code(status.code), *(f"{key}={details[key]}" for key in keys)])


def _code(code: int) -> str:
    return {1: "OK", 2: "OVER"}[code]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_answers_on_the_wire_are_those_of_the_case(case: Case, world: World, peer: Caller) -> None:
    run = WireRun(case, world, peer)
    for step in case.steps:
        run.step(step)


def nested(depth: int) -> str:
    return "{a: " * depth + "1" + "}" * depth


def test_a_request_that_no_message_can_answer_fails_alone_and_uncounted(
    world: World, peer: Caller
) -> None:
    limit = "rate_limit: {unit: hour, requests_per_unit: 3}"
    rules = rules_from(
        f"domain: d\ndescriptors: [{{key: deep, {limit}, metadata: {nested(60)}}}, "
        f"{{key: flat, {limit}, metadata: {nested(30)}}}]\n"
    )
    policy = Policy(has_dynamic_metadata=True)
    decider = wire_decider(policy, LocalCounters(), ManualClock(1_000_000))
    decider.use_rules(rules)
    world.decisions.answer = wire_answers(decider, is_precise=False)
    world.decisions.hold()
    flat = message_of(RateLimitRequest("d", (RateLimitDescriptor((("flat", ""),)),)))
    both = message_of(
        RateLimitRequest("d", tuple(RateLimitDescriptor(((key, ""),)) for key in ("flat", "deep")))
    )
    calls = peer.start([flat, both, flat])
    world.decisions.release()
    error = calls[1].exception(PATIENCE_S)
    assert error.code() is grpc.StatusCode.INTERNAL
    assert "deeper than 30 levels" in error.details()
    remaining = [
        ResponseMessage.FromString(calls[each].result()).statuses[0].limit_remaining
        for each in (0, 2)
    ]
    assert sorted(remaining) == [1, 2]


def test_what_is_no_message_is_an_internal_error_as_in_the_reference(
    world: World, peer: Caller
) -> None:
    decider = wire_decider(Policy(), LocalCounters(), ManualClock())
    world.decisions.answer = wire_answers(decider, is_precise=False)
    with pytest.raises(grpc.RpcError) as refusal:
        peer.decide(b"\x0a\xff", timeout=PATIENCE_S)
    assert refusal.value.code() is grpc.StatusCode.INTERNAL
