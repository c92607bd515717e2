"""Puts the rate limit together: the settings in, its actors and the parts of a front out."""

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import SystemRandom, randbits
from typing import Any

from tollgate.actors.kernel.actor import ActorSeat
from tollgate.actors.kernel.clock import Clock, SystemClock
from tollgate.actors.operations.actor import Operations, start_operations
from tollgate.actors.operations.attendance import USUAL_BOUNDS
from tollgate.actors.operations.attendant import Attendant
from tollgate.actors.ratelimit.counting.actor import start_partitions
from tollgate.actors.ratelimit.lent_counting.actor import start_lent_partitions
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.snapshots.journal_folder import JournalFolder, JournalName
from tollgate.actors.ratelimit.snapshots.keeper import SnapshotKeeper
from tollgate.actors.ratelimit.statistics.tallies import (
    StatisticsDelta,
    StatisticsReporter,
    Tallies,
)
from tollgate.actors.ratelimit.watching.actor import rule_sets, start_watcher
from tollgate.actors.ratelimit.watching.subscription import Subscription
from tollgate.actors.ratelimit.watching.watcher import Watcher
from tollgate.serve.net.listener import Listener, listen
from tollgate.serve.node.logs import configure_logs
from tollgate.serve.node.socket_folder import private_folder, socket_folder
from tollgate.serve.ratelimit.backends.choice import outside_store
from tollgate.serve.ratelimit.backends.outside_store import Counters
from tollgate.serve.ratelimit.counting_shadow.shadow import ShadowedDecider
from tollgate.serve.ratelimit.debug.counter_pages import CounterPages
from tollgate.serve.ratelimit.debug.port import DebugPort
from tollgate.serve.ratelimit.engine import (
    counting_shadow,
    front_counters,
    front_decider,
    lending_terms,
    request_bounds,
)
from tollgate.serve.ratelimit.front_process import FrontProcess
from tollgate.serve.ratelimit.fronts.batcher import CallBatcher
from tollgate.serve.ratelimit.fronts.choice import make_front
from tollgate.serve.ratelimit.fronts.front import (
    Front,
    ListenAddress,
    ServerTls,
    Service,
    unfailing,
)
from tollgate.serve.ratelimit.fronts.native import NativeTuning
from tollgate.serve.ratelimit.health import Health
from tollgate.serve.ratelimit.json_door.endpoint import JsonEndpoint
from tollgate.serve.ratelimit.json_door.exchange import JsonExchange
from tollgate.serve.ratelimit.json_door.server import JsonDoor
from tollgate.serve.ratelimit.json_door.traced import TracedJsonDoor, TracedJsonEndpoint
from tollgate.serve.ratelimit.replies import wire_answers
from tollgate.serve.ratelimit.rule_sources.files import FileArchive, RuleDirectory
from tollgate.serve.ratelimit.sinks.choice import line_sink, metrics_text
from tollgate.serve.ratelimit.sinks.prometheus import metrics_app
from tollgate.serve.ratelimit.sinks.pump import StatisticsPump
from tollgate.serve.ratelimit.tracing.set_up import Tracing, set_up_tracing
from tollgate.serve.settings import Settings, add_to_process_environment
from tollgate.serve.settings.choices import (
    Backend,
    Counting,
    ErrorStatusCodes,
    GrpcFront,
    RuleSource,
    Transport,
    WhenFull,
)

LOG = logging.getLogger("tollgate.ratelimit")
NAMESPACE = "tollgate"
# Detached actors outlive whoever made them: a new kind of state takes a new name.
STATE_VERSION = "v1"
OPERATIONS = f"operations-{STATE_VERSION}"
INTERNAL_ERROR = "ratelimit.service.call.should_rate_limit.internal_error"


@dataclass(frozen=True, slots=True)
class RateLimitActors:
    """Handles of the actors behind the fronts. There are no partitions where an outside store
    counts."""

    partitions: list[Any]
    watcher: Any
    operations: Any


def rate_limit_actors(settings: Settings, run: str) -> RateLimitActors:
    """The actors of this run: created if they are not there yet. `run` names one deployment."""
    partitions = _partitions(settings) if settings.counting.is_counted_in(Backend.ACTORS) else []
    watcher = start_watcher(
        f"watcher-{STATE_VERSION}",
        NAMESPACE,
        partial(_watcher, settings, run),
        settings.rules.poll_interval_s,
    )
    operations = start_operations(
        OPERATIONS,
        NAMESPACE,
        partial(open_ports, settings),
        partitions,
        watcher,
        SystemClock(),
        settings.bounds.dynamic_series_max,
        USUAL_BOUNDS,
        partial(statistics_pump, settings),
    )
    return RateLimitActors(partitions, watcher, operations)


def _partitions(settings: Settings) -> list[Any]:
    """The counter partitions: what lends and what does not have names of their own."""
    count = settings.counting.partitions
    numbers = [f"{STATE_VERSION}-{number}-of-{count}" for number in range(count)]
    clock, keepers = SystemClock(), counter_keepers(settings)
    if settings.counting.place is Counting.LENT:
        names = [f"lent-counters-{number}" for number in numbers]
        return start_lent_partitions(names, NAMESPACE, lending_terms(settings), clock, keepers)
    names = [f"counters-{number}" for number in numbers]
    return start_partitions(
        names,
        NAMESPACE,
        settings.bounds.counters_per_partition_max,
        clock,
        keepers,
        refuses_when_full=settings.counting.when_full is WhenFull.REFUSE,
    )


def counter_keepers(settings: Settings) -> list[Callable[[], SnapshotKeeper]] | None:
    """Makers of the partitions' keepers; None when nothing is kept."""
    count = settings.counting.partitions
    if not settings.counting.snapshot_interval_s:
        return None
    return [partial(_keeper, settings, JournalName(number, count)) for number in range(count)]


def _keeper(settings: Settings, name: JournalName) -> SnapshotKeeper:
    configure_logs(settings)
    folder = JournalFolder(Path(settings.process.data) / "ratelimit" / "counters")
    return SnapshotKeeper(folder, name, settings.counting.snapshot_interval_s, SystemClock())


def _watcher(settings: Settings, run: str) -> Watcher | Subscription:
    configure_logs(settings)
    archive = FileArchive(Path(settings.process.data) / "ratelimit" / "last-good-rules.json")
    if settings.rules.source is RuleSource.XDS:
        return _subscription(settings, archive)
    load = partial(load_rules, merge_domains=settings.rules.merges_domains)
    return Watcher(run, RuleDirectory.of(settings.rules), archive, load)


def _subscription(settings: Settings, archive: FileArchive) -> Subscription:
    """The rules of a control plane, and the thread that listens to it. Its last good rules outlive
    the run: that it is away when a node starts is no reason to decide without rules."""
    # Imported here: rules from files need none of the messages.
    from tollgate.serve.ratelimit.rule_sources.control_plane import ControlPlane
    from tollgate.serve.ratelimit.rule_sources.resources import read_resource

    plane = settings.control_plane
    load = partial(load_rules, merge_domains=settings.rules.merges_domains, read=read_resource)
    subscription = Subscription(plane.target, plane.node_id, archive, load, SystemClock())
    ControlPlane(plane, subscription, SystemRandom().random).start()
    return subscription


async def open_ports(settings: Settings, operations: Operations) -> dict[str, Listener]:
    """Opens the ports of these settings: the open ones by name. OSError when one is taken."""
    configure_logs(settings)
    outside = outside_store(settings)
    debug = DebugPort(
        statistics=operations.statistics,
        dump_rules=operations.dump_rules,
        describe_rules=operations.describe_rules,
        processes=operations.processes,
        allocations=operations.allocations,
        counters=CounterPages(
            operations.counters,
            SystemClock(),
            prefix=settings.counting.cache_key_prefix,
            key=settings.debug.tracing_key,
            elsewhere="" if outside is None else outside.place,
        ),
        tracing_key=settings.debug.tracing_key,
    )
    ports = {
        "debug": await listen(
            debug.app(), settings.debug.host, settings.debug.port, what="the debug port"
        )
    }
    statistics = settings.statistics
    if statistics.transport is not Transport.PULLMETRICS:
        return ports
    address = statistics.pullmetrics_addr
    app = metrics_app(metrics_text(settings), operations.statistics, statistics.pullmetrics_path)
    try:
        ports["metrics"] = await listen(app, address.host, address.port, what="the metrics port")
    except OSError:
        await ports["debug"].stop()
        raise
    return ports


def statistics_pump(settings: Settings, operations: Operations) -> StatisticsPump | None:
    """Sends what the actor sums up to the server of these settings; None when there is none."""
    sink = line_sink(settings, SystemClock(), operations.count)
    if sink is None:
        return None
    return StatisticsPump(sink, operations.flush, settings.statistics.flush_interval_s)


def front_process(
    settings: Settings,
    actors: RateLimitActors,
    send: Callable[[StatisticsDelta], "Future[object] | None"],
) -> FrontProcess:
    """A front process, put together and not yet started. `send`: statistics to the operators."""
    configure_logs(settings)
    clock: Clock = SystemClock()
    tallies = Tallies(f"front-{os.getpid()}")
    store = front_counters(settings, actors.partitions, clock, tallies)
    tracing = _tracing(settings, store, clock, tallies) if settings.tracing.is_on else None
    decider = front_decider(settings, store if tracing is None else tracing.store, clock, tallies)
    shadow = counting_shadow(settings, actors.partitions, clock, tallies)
    shadowed = decider if shadow is None else ShadowedDecider(decider, shadow)
    health = Health(
        needs_config=settings.rules.need_to_be_there,
        needs_domains=settings.rules.decides_health,
        has_backend=store.has_begun,
    )
    is_precise = settings.decision.error_status_codes is ErrorStatusCodes.PRECISE
    service = Service(
        decide_batch=wire_answers(shadowed, is_precise=is_precise),
        health=health,
        clock=clock,
        observe=partial(_observe, tallies),
        on_error=lambda _: tallies.count(INTERNAL_ERROR),
        count=tallies.count,
        tracer=None if tracing is None else tracing.tracer,
    )
    # Who looks after all others; with several fronts, each of them does.
    seats = {"operations": ActorSeat(actors.operations)}
    has_statistics = settings.statistics.transport is not Transport.DISABLED
    return FrontProcess(
        front=grpc_front(settings, service),
        json_door=_json_door(settings, service),
        service=service,
        decider=decider,
        store=store,
        tallies=tallies,
        follow=partial(rule_sets, actors.watcher),
        attend=Attendant(seats, clock, tallies.count).attend,
        reporter=StatisticsReporter(tallies, send) if has_statistics else None,
        checks_backend=settings.counting.checks_backend,
        spans=None if tracing is None else tracing.spans,
        shadow=shadow,
    )


def _tracing(settings: Settings, store: Counters, clock: Clock, tallies: Tallies) -> Tracing:
    """Tracing by these settings, whose exporters read the environment."""
    add_to_process_environment(settings.otlp)
    return set_up_tracing(settings, store, clock, tallies.count, randbits)


def json_endpoint(service: Service, exchange: JsonExchange) -> JsonEndpoint:
    """The JSON door behind Serve, with a thread of its own that decides."""
    decide, tracer = unfailing(service), service.tracer
    batcher = CallBatcher(decide, ThreadPoolExecutor(1, "json"), count=service.count, tracer=tracer)
    if tracer is None:
        return JsonEndpoint(batcher.decide, exchange)
    return TracedJsonEndpoint(batcher, exchange, service)


def json_exchange(
    settings: Settings, health: Health, elsewhere: tuple[str, ...] = ()
) -> JsonExchange:
    """What calls of the JSON door mean under these settings; `elsewhere` as there."""
    is_precise = settings.decision.error_status_codes is ErrorStatusCodes.PRECISE
    bounds = request_bounds(settings)
    return JsonExchange(health, is_precise=is_precise, bounds=bounds, elsewhere=elsewhere)


def _json_door(settings: Settings, service: Service) -> JsonDoor:
    address = settings.json
    listen = ListenAddress(address.host, address.port, is_port_shared=bool(address.port))
    door = JsonDoor if service.tracer is None else TracedJsonDoor
    return door(listen, service, json_exchange(settings, service.health))


def _observe(tallies: Tallies, method: str, calls: int, seconds: float) -> None:
    tallies.count(f"ratelimit_server.{method}.total_requests", calls)
    tallies.observe(method, calls, seconds)


def grpc_front(settings: Settings, service: Service) -> Front:
    """The gRPC front of these settings, not yet listening. Says so when that is the slower one."""
    grpc = settings.grpc
    listen = ListenAddress(
        host=grpc.host,
        port=grpc.port,
        unix_socket=grpc.uds,
        tls=ServerTls(grpc.tls_cert, grpc.tls_key, grpc.client_ca, grpc.client_san)
        if grpc.has_tls
        else None,
        # 0 is none (B22).
        connection_age_s=grpc.connection_age_max_s or None,
        connection_age_grace_s=grpc.connection_age_grace_s or None,
        # Each front finds a port of its own where none is named.
        is_port_shared=bool(grpc.port) and not grpc.uds,
    )
    if settings.reasons_for_grpcio and grpc.front is GrpcFront.AUTO:
        names = " and ".join(map(settings.spelled, settings.reasons_for_grpcio))
        LOG.warning("gRPC is served by grpcio, a slower front with more bounds, for %s", names)
    sockets = private_folder(socket_folder(settings.process.data) / "sockets")
    tuning = NativeTuning(socket_dir=sockets, io_threads=grpc.io_threads)
    return make_front(settings.grpc_front, listen, service, tuning)
