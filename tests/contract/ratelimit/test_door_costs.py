"""The cost of the rate limit's doors at their worst: time in proportion to the size, a free event
loop, no memory kept, and a bounded reply."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import grpc
import pytest
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.support.call_costs import (
    Answer,
    Ask,
    asked,
    assert_linear,
    assert_loop_is_free,
    cost_of,
    growth_of,
    kept_bytes,
)
from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.grpc_peers import PATIENCE_S, Caller, World, caller, end
from tollgate.actors.ratelimit.counting.counters import LocalCounters
from tollgate.actors.ratelimit.decision.decider import Decider
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.rules.descriptors import (
    DESCRIPTORS_PER_REQUEST_MAX,
    ENTRIES_PER_DESCRIPTOR_MAX,
    REQUEST_BYTES_MAX,
)
from tollgate.actors.ratelimit.rules.rule_file import RuleFile
from tollgate.actors.ratelimit.statistics.tallies import (
    RULE_STATS,
    Tallies,
)
from tollgate.actors.ratelimit.statistics.totals import DYNAMIC_SERIES_MAX, Statistics
from tollgate.serve.ratelimit.codec.answers import current_limit_bytes
from tollgate.serve.ratelimit.codec.messages import RequestMessage
from tollgate.serve.ratelimit.debug.port import DebugPort
from tollgate.serve.ratelimit.fronts.batcher import CallBatcher
from tollgate.serve.ratelimit.fronts.choice import make_front
from tollgate.serve.ratelimit.fronts.front import DecideBatch, ListenAddress
from tollgate.serve.ratelimit.fronts.native import NativeTuning
from tollgate.serve.ratelimit.health import Health
from tollgate.serve.ratelimit.json_door.endpoint import JsonEndpoint
from tollgate.serve.ratelimit.json_door.exchange import LARGE_BODY_BYTES, JsonExchange
from tollgate.serve.ratelimit.replies import decoded_request, encoded_decision, wire_answers
from tollgate.serve.settings.choices import GrpcFront

RULES = """
domain: d
descriptors:
  - {key: free, rate_limit: {unlimited: true}}
  - {key: plain, rate_limit: {unit: day, requests_per_unit: 10, name: the-limit-of-plain}}
"""
# A whole request, and an error, with all that statuses can hold.
JSON_REPLY_BYTES_MAX = 40 * 1024
GRPC_REPLY_BYTES_MAX = 16 * 1024
# What stands around the part of a body that grows.
ENVELOPE_BYTES = 8 * 1024
DESCRIPTORS, ENTRIES = DESCRIPTORS_PER_REQUEST_MAX, ENTRIES_PER_DESCRIPTOR_MAX
Body = Callable[[int], bytes]


def deciding() -> DecideBatch:
    decider = Decider(
        policy=Policy(),
        store=LocalCounters(2),
        tallies=Tallies("test"),
        clock=ManualClock(1234),
        decode=decoded_request,
        render_limit=current_limit_bytes,
        encode=encoded_decision,
    )
    decider.use_rules(load_rules([RuleFile("d.yaml", RULES)], merge_domains=False))
    return wire_answers(decider, is_precise=True)


@pytest.fixture
def json_door() -> Iterator[ASGIApp]:
    with ThreadPoolExecutor(1) as thread:
        batcher = CallBatcher(deciding(), thread)
        door = JsonEndpoint(batcher.decide, JsonExchange(Health(), is_precise=True))

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            response = await door.answer(Request(scope, receive))
            await response(scope, receive, send)

        yield app


def listed(element: bytes, size: int) -> bytes:
    return b",".join([element] * (size // (len(element) + 1)))


def question(descriptors: bytes) -> bytes:
    return b'{"domain":"d","descriptors":[%b]}' % descriptors


def whole_question(size: int) -> bytes:
    """As many descriptors and entries as are allowed, of about so many bytes together."""
    filling = b"x" * max(0, size // (DESCRIPTORS * ENTRIES) - len(b'{"key":"plain","value":""},'))
    entry = b'{"key":"plain","value":"%b"}' % filling
    entries = listed(entry, min(size // DESCRIPTORS, ENTRIES * (len(entry) + 1)))
    return question(b",".join([b'{"entries":[%b]}' % entries] * DESCRIPTORS))


def limited_question(_: int) -> bytes:
    limit = b'{"requestsPerUnit":4000000000,"unit":"MINUTE"}'
    return question(b",".join([b'{"entries":[{"key":"plain"}],"limit":%b}' % limit] * DESCRIPTORS))


JSON_BODIES: dict[str, Body] = {
    "as many entries as are allowed": whole_question,
    "as many limits as are allowed": limited_question,
    "empty descriptors": lambda size: question(listed(b"{}", size)),
    "empty entries": lambda size: question(b'{"entries":[%b]}' % listed(b"{}", size)),
    "a domain of lists": lambda size: b'{"domain":[%b]}' % listed(b"[]", size),
    "a domain of numbers": lambda size: b'{"domain":[%b]}' % listed(b"1", size),
    "a domain of long numbers": lambda size: b'{"domain":[%b]}' % listed(b"1" * 4_000, size),
    "a domain of texts": lambda size: b'{"domain":[%b]}' % listed(b'"x"', size),
    "a long domain": lambda size: b'{"domain":"%b"}' % (b"x" * size),
    "a long domain, escaped": lambda size: b'{"domain":"%b"}' % (b"\\u0041" * (size // 6)),
    "a long addend": lambda size: question(b'{"hitsAddend":"%b"}' % (b"1" * size)),
    "a long name": lambda size: b'{"%b":1}' % (b"x" * size),
    "many names": lambda size: (
        b"{%b}" % b",".join(b'"%06d":1' % number for number in range(size // 11))
    ),
    "lists in lists": lambda size: b"[" * size,
    "objects in objects": lambda size: b'{"a":' * (size // 5),
    "blanks": lambda size: b" " * size,
}


@pytest.mark.parametrize("name", JSON_BODIES)
def test_a_json_body_costs_its_share(name: str, json_door: ASGIApp) -> None:
    def ask(size: int) -> Ask:
        body = JSON_BODIES[name](size - ENVELOPE_BYTES)
        assert len(body) <= REQUEST_BYTES_MAX
        return partial(asked, json_door, "POST", "/json", body)

    growth = asyncio.run(growth_of(ask, REQUEST_BYTES_MAX, 8))
    assert_linear(growth)
    for cost in (growth.small, growth.large):
        assert_loop_is_free(cost)
        assert cost.answer.status in (200, 400, 429)
        assert len(cost.answer.body) < JSON_REPLY_BYTES_MAX


@pytest.mark.parametrize("name", JSON_BODIES)
def test_a_json_body_that_is_read_on_the_loop_is_small(name: str, json_door: ASGIApp) -> None:
    body = JSON_BODIES[name](LARGE_BODY_BYTES - 64)[:LARGE_BODY_BYTES]
    cost = asyncio.run(cost_of(partial(asked, json_door, "POST", "/json", body)))
    assert_loop_is_free(cost)


@pytest.mark.parametrize(
    "name", ["as many entries as are allowed", "empty descriptors", "a long domain"]
)
def test_a_json_body_leaves_nothing_behind(name: str, json_door: ASGIApp) -> None:
    body = JSON_BODIES[name](REQUEST_BYTES_MAX // 8)
    ask = partial(asked, json_door, "POST", "/json", body)
    assert asyncio.run(kept_bytes(ask, len(body))) < len(body)


@pytest.mark.parametrize("path", ["/healthcheck", "/", "/" + "x" * 60_000, "/json/" + "%2F" * 999])
def test_other_paths_cost_the_same_whatever_is_sent(path: str, json_door: ASGIApp) -> None:
    body = b"x" * REQUEST_BYTES_MAX
    headers = [("cookie", f"name{number}=value") for number in range(1_000)]
    ask = partial(asked, json_door, "POST", path, body, headers, b"a=b&" * 4_096)
    cost = asyncio.run(cost_of(ask))
    assert_loop_is_free(cost)
    assert len(cost.answer.body) < 100


# --- gRPC -----------------------------------------------------------------------------------------


def message(descriptors: int, entries: int, size: int = 0) -> bytes:
    """Of about so many bytes, when a size is given."""
    filling = "x" * max(0, size // max(1, descriptors * entries) - 12)
    request = RequestMessage(domain="d")
    for _ in range(descriptors):
        added = request.descriptors.add()
        for _ in range(entries):
            added.entries.add(key="plain", value=filling)
    content: bytes = request.SerializeToString()
    return content


MESSAGES: dict[str, Body] = {
    "as many entries as are allowed": lambda size: message(DESCRIPTORS, ENTRIES, size),
    "empty descriptors": lambda size: b"\x12\x00" * (size // 2),
    "empty entries": lambda size: message(1, 1)[:3] + framed(b"\x0a\x00" * (size // 2)),
    "fields that nobody knows": lambda size: b"\x78\x01" * (size // 2),
    "a long domain": lambda size: RequestMessage(domain="x" * size).SerializeToString(),
    "no message at all": lambda size: b"\xff" * size,
}


def framed(descriptor: bytes) -> bytes:
    request: bytes = RequestMessage.FromString(
        b"\x12" + bytes(varint(len(descriptor))) + descriptor
    ).SerializeToString()
    return request


def varint(number: int) -> Iterator[int]:
    while number > 0x7F:
        yield number & 0x7F | 0x80
        number >>= 7
    yield number


@pytest.fixture(params=[GrpcFront.NATIVE, GrpcFront.GRPCIO], ids=lambda choice: choice.value)
def grpc_door(request: pytest.FixtureRequest, socket_dir: Path) -> Iterator[Caller]:
    service = replace(World().service(), decide_batch=deciding())
    listen = ListenAddress("127.0.0.1", 0)
    front = make_front(request.param, listen, service, NativeTuning(socket_dir))
    front.start()
    with caller(front.address) as peer:
        peer.check("")
        yield peer
    end(front)


def call(peer: Caller, payload: bytes) -> Ask:
    """The call from a thread: this loop has nothing to do with it but to be held up."""

    def decided() -> Answer:
        try:
            return Answer(0, peer.decide(payload, timeout=PATIENCE_S))
        except grpc.RpcError as refusal:
            return Answer(refusal.code().value[0], refusal.details().encode())

    return partial(asyncio.to_thread, decided)


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_costs_its_share(name: str, grpc_door: Caller) -> None:
    def ask(size: int) -> Ask:
        payload = MESSAGES[name](size - ENVELOPE_BYTES)
        assert len(payload) <= REQUEST_BYTES_MAX
        return call(grpc_door, payload)

    growth = asyncio.run(growth_of(ask, REQUEST_BYTES_MAX, 8))
    assert_linear(growth)
    for cost in (growth.small, growth.large):
        assert_loop_is_free(cost)
        assert len(cost.answer.body) < GRPC_REPLY_BYTES_MAX


def test_a_message_leaves_nothing_behind(grpc_door: Caller) -> None:
    payload = MESSAGES["as many entries as are allowed"](REQUEST_BYTES_MAX // 8)
    kept = asyncio.run(kept_bytes(call(grpc_door, payload), len(payload)))
    assert kept < len(payload)


class Unasked:
    """What the page of statistics asks nothing of."""

    async def rules(self) -> str:
        raise AssertionError

    async def processes(self) -> Mapping[str, int]:
        raise AssertionError

    async def start(self, process: str) -> None:
        raise AssertionError(process)

    async def finish(self, process: str) -> str:
        raise AssertionError(process)


def test_as_many_series_as_callers_can_make_hold_nobody_up() -> None:
    series = DYNAMIC_SERIES_MAX * (len(RULE_STATS) + 1)
    names = (f"{number * 7_919 % series:08d}{'k' * 100}" for number in range(series))
    counters = dict.fromkeys(names, 1)
    unasked = Unasked()

    async def statistics() -> Statistics:
        return Statistics(counters, {}, {})

    port = DebugPort(
        statistics=statistics,
        dump_rules=unasked.rules,
        processes=unasked.processes,
        allocations=unasked,
    )
    cost = asyncio.run(cost_of(partial(asked, port.app(), "GET", "/stats")))
    assert cost.answer.body.count(b"\n") == len(counters)
    assert_loop_is_free(cost)
