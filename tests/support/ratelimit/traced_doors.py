"""Both doors of a service that is traced, with the parts that a front process has, without Ray, and
what one asks them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from threading import Lock

import pytest

from tests.support.ratelimit.engine import rules_from
from tests.support.ratelimit.grpc_peers import PATIENCE_S, Caller, end
from tests.support.ratelimit.json_port import DRAIN_GRACE_S, FREE_PORT
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.counting.counters import CounterStore, LocalCounters
from tollgate.actors.ratelimit.decision.decider import Decider
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.codec.answers import current_limit_bytes
from tollgate.serve.ratelimit.codec.messages import RequestMessage
from tollgate.serve.ratelimit.fronts.choice import make_front
from tollgate.serve.ratelimit.fronts.front import Front, ListenAddress, Service
from tollgate.serve.ratelimit.fronts.native import NativeTuning
from tollgate.serve.ratelimit.health import Health
from tollgate.serve.ratelimit.json_door.exchange import JsonExchange
from tollgate.serve.ratelimit.json_door.server import JsonDoor
from tollgate.serve.ratelimit.json_door.traced import TracedJsonDoor
from tollgate.serve.ratelimit.replies import decoded_request, encoded_decision, wire_answers
from tollgate.serve.ratelimit.tracing.propagation_headers import TRACE_BITS
from tollgate.serve.ratelimit.tracing.set_up import Tracing, set_up_tracing
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import GrpcFront

RULES = """
domain: d
descriptors:
  - {key: k, rate_limit: {unit: year, requests_per_unit: 1000000}}
"""


def question(*values: str, domain: str = "d") -> bytes:
    message = RequestMessage(domain=domain)
    for value in values:
        message.descriptors.add().entries.add(key="k", value=value)
    return bytes(message.SerializeToString())


def to(url: str, protocol: str = "http", **more: str) -> dict[str, str]:
    """Settings that send spans there."""
    return {
        "TRACING_EXPORTER_PROTOCOL": protocol,
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_TIMEOUT": str(PATIENCE_S),
        **more,
    }


def ask(peer: Caller, calls: int = 1, payload: bytes = question("v"), **call: object) -> None:
    for _ in range(calls):
        peer.decide(payload, timeout=PATIENCE_S, **call)


@dataclass
class TracedDoors:
    """The doors, and what stands behind them."""

    front: Front
    json_door: JsonDoor
    service: Service
    exchange: JsonExchange
    tracing: Tracing
    counted: Counter[str] = field(default_factory=Counter)


@contextmanager
def traced_doors(
    variables: Mapping[str, str],
    socket_dir: Path,
    choice: GrpcFront = GrpcFront.NATIVE,
    store: CounterStore | None = None,
    seed: int = 1,
) -> Iterator[TracedDoors]:
    """Opens them with these settings, and OpenTelemetry's own variables among them."""
    settings = Settings.from_environment({"TRACING_ENABLED": "true", **variables})
    clock, health, tallies, lock = SystemClock(), Health(), Tallies("test"), Lock()
    counted: Counter[str] = Counter()
    trace_ids, span_ids = Random(seed), Random(seed)

    def count(name: str, by: int) -> None:
        with lock:
            counted[name] += by

    def drawn(bits: int) -> int:
        with lock:
            return (trace_ids if bits == TRACE_BITS else span_ids).getrandbits(bits)

    with ExitStack() as to_close:
        patch = to_close.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("NO_PROXY", "127.0.0.1")
        for name, value in settings.otlp.items():
            patch.setenv(name, value)
        tracing = set_up_tracing(settings, store or LocalCounters(2), clock, count, drawn)
        decider = Decider(
            policy=Policy(),
            store=tracing.store,
            tallies=tallies,
            clock=clock,
            decode=decoded_request,
            render_limit=current_limit_bytes,
            encode=encoded_decision,
        )
        decider.use_rules(rules_from(RULES))
        service = Service(
            decide_batch=wire_answers(decider, is_precise=False),
            health=health,
            clock=clock,
            observe=lambda method, calls, seconds: None,
            on_error=lambda error: None,
            count=count,
            tracer=tracing.tracer,
        )
        exchange = JsonExchange(health, is_precise=False)
        tracing.spans.start()
        to_close.callback(tracing.spans.stop)
        listen = ListenAddress("127.0.0.1", 0)
        front = make_front(choice, listen, service, NativeTuning(socket_dir))
        front.start()
        to_close.callback(partial(end, front))
        json_door = TracedJsonDoor(FREE_PORT, service, exchange)
        json_door.start()
        to_close.callback(partial(json_door.drain, DRAIN_GRACE_S))
        yield TracedDoors(front, json_door, service, exchange, tracing, counted)
