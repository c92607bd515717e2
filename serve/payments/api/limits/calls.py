"""Limits of calls to the API, counted by Tollgate's own rate limiter (parts D and G).

Every call asks once, before any side effect, with a descriptor for each thing it counts against:
app, merchant, address (in IPv6 its /64). The rules are `configs/payments/limits.yaml`. One process
counts for itself; several count in the partitions, and the questions of calls that come together
travel together. When the counters do not answer, calls pass: a limit protects the service, it must
not be what stops it.
"""

from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from msgspec.msgpack import Decoder, Encoder

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.counters import CounterStore
from tollgate.actors.ratelimit.counting.routes import Route
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.decider import Decider
from tollgate.actors.ratelimit.decision.policy import FailureMode, Policy
from tollgate.actors.ratelimit.decision.response import OVER_LIMIT, RateLimitDecision
from tollgate.actors.ratelimit.rules.builder import RuleFile, load_rules
from tollgate.actors.ratelimit.rules.descriptors import (
    Entries,
    RateLimitDescriptor,
    RateLimitRequest,
)
from tollgate.actors.ratelimit.rules.rule_set import RuleSet
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.net.public_addresses import network_of
from tollgate.serve.payments.api.rejections import TooMany
from tollgate.serve.ratelimit.fronts.batcher import CallBatcher
from tollgate.serve.ratelimit.fronts.front import WireReply

DOMAIN = "tollgate.payments"
# (payments are counted by their address alone before their bodies are read)
LimitedCall = Literal[
    "apps",
    "recoveries",
    "merchants",
    "live_merchants",
    "payments",
    "challenges",
    "vault",
    "invitations",
    "webhook_tests",
    "pages",
]
_POLICY = Policy(failure_mode=FailureMode.ALLOW, plan_memo_entries_max=16_384)

# The engine remembers plans by the bytes of their questions.
_encode_question = _encode_wait = Encoder().encode
_decode_question = Decoder(tuple[Entries, ...]).decode
_decode_wait = Decoder(int).decode
_PASSES = _encode_wait(0)


class CallLimits(Protocol):
    """Counts calls, and stops those beyond a limit."""

    async def admit(self, *wanted: Entries) -> None:
        """Counts the call against each of these. Raises TooMany."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """CallLimits by the rate-limit engine; belongs to one event loop."""

    decide: Callable[[bytes], Awaitable[WireReply]]

    async def admit(self, *wanted: Entries) -> None:
        answer = await self.decide(_encode_question(wanted))
        if isinstance(answer, bytes) and (wait_s := _decode_wait(answer)):
            raise TooMany("too many calls, slow down", wait_s)


def per_app(app: str, *, is_test: bool, is_write: bool) -> Entries:
    """The descriptor of an app's call."""
    return (("app", app), *_mode_and_kind(is_test=is_test, is_write=is_write))


def per_merchant(merchant: str, *, is_test: bool, is_write: bool) -> Entries:
    """The descriptor of a call about a merchant."""
    return (("merchant", merchant), *_mode_and_kind(is_test=is_test, is_write=is_write))


def per_call(
    call: LimitedCall,
    *,
    key: str | None = None,
    app: str | None = None,
    merchant: str | None = None,
    address: str | None = None,
) -> Entries:
    """The descriptor of a call that has limits of its own, by what it counts against. `key`: a
    merchant's public one."""
    network = None if address is None else network_of(address)
    counted = (("key", key), ("app", app), ("merchant", merchant), ("address", network))
    return (("call", call), *((name, value) for name, value in counted if value is not None))


def load_limits(file: Path) -> RuleSet:
    """The rules of the file. Raises RuleFileError, OSError."""
    return load_rules([RuleFile(file.name, file.read_bytes())], merge_domains=False)


def engine_limits(
    rules: RuleSet,
    store: CounterStore,
    clock: Clock,
    executor: Executor | None,
    tallies: Tallies,
    *,
    route: Route | None = None,
    prefix: str = "",
) -> EngineLimits:
    """CallLimits by these rules, counted in this store. `executor`: one thread, which waits for it;
    None when the store is in this process and answers at once. `route`: of a store outside of
    Tollgate, and the `prefix` of its counters."""
    policy = _POLICY
    if route is not None:
        policy = replace(policy, has_outside_counters=True, counter_key_prefix=prefix)
    decider = Decider(
        policy=policy,
        store=store,
        tallies=tallies,
        clock=clock,
        decode=_decoded,
        render_limit=_unrendered,
        encode=_encoded,
        route=route,
    )
    decider.use_rules(rules)

    def decide(payloads: Sequence[bytes]) -> list[WireReply]:
        # A refusal means that the counters, or this module, are at fault, never the caller.
        answers = decider.decide_batch(payloads)
        return [answer if isinstance(answer, bytes) else _PASSES for answer in answers]

    async def at_once(payload: bytes) -> WireReply:
        return decide([payload])[0]

    return EngineLimits(at_once if executor is None else CallBatcher(decide, executor).decide)


def _mode_and_kind(*, is_test: bool, is_write: bool) -> Entries:
    mode, kind = "test" if is_test else "live", "write" if is_write else "read"
    return (("mode", mode), ("kind", kind))


def _decoded(payload: bytes) -> RateLimitRequest:
    return RateLimitRequest(DOMAIN, tuple(map(RateLimitDescriptor, _decode_question(payload))))


def _encoded(decision: RateLimitDecision) -> bytes:
    """The seconds until the call may go on; 0: now."""
    if decision.overall != OVER_LIMIT:
        return _PASSES
    waits_s = [status.reset_s for status in decision.statuses if status.code == OVER_LIMIT]
    return _encode_wait(max(1, *waits_s))


def _unrendered(requests_per_unit: int, unit: Unit, name: str) -> bytes:
    del requests_per_unit, unit, name
    return b""
