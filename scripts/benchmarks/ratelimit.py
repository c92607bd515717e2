"""`scripts/bench ratelimit`: what a decision costs, beside two other ways to make it.

Every figure of a run is taken on the machine that also makes the load, so absolute numbers are low;
compare within a run. The baselines answer the same requests: our own front on grpcio, and the
plain way (Serve's gRPC ingress, one actor call per request).
"""

import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count, cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

import click
from rich.console import Console
from rich.table import Table

from scripts.benchmarks.grpc_load import Load, run_load
from scripts.benchmarks.h2load import run_h2load
from scripts.benchmarks.tollgate_node import TollgateNode, Usage, json_body, tollgate_node
from tests.support.processes.envoy import EnvoyProcess
from tests.support.servers.memcached import Memcached, memcached
from tests.support.servers.redis import RedisProcess, redis_process
from tollgate.actors.operations.actor import ASK_EVERY_S
from tollgate.serve.node.ports import free_port
from tollgate.serve.ratelimit.codec.json_requests import request_from_json
from tollgate.serve.ratelimit.codec.messages import METHOD_PATH

CONNECTIONS = 8
IN_FLIGHT = (1, 80, 256)
DISTINCT_KEYS = 100_000
SATURATING_CALLS = 200_000
SINGLE_CALLS = 5_000
WARM_UP_CALLS = 20_000
MEMORY_CALLS = 1_000_000
MEMORY_ROUNDS = 5
JSON_CLIENTS = (1, 32)
ENVOY = Path(".cache/envoy/envoy/_bin/envoy")
ENVOY_RULES = """\
domain: edge
descriptors:
  - key: remote_address
    rate_limit: {unit: hour, requests_per_unit: 4000000000}
  - key: path
    rate_limit: {unit: hour, requests_per_unit: 4000000000}
"""
ENVOY_CLIENTS = 32
ENVOY_CALLS = 60_000
MIB = 1024 * 1024
DISTINCT = "100k distinct keys"
BACKEND_ERROR = "ratelimit.service.call.should_rate_limit.redis_error"
CALLS_TO_PARTITIONS = "ratelimit.counters.calls"
READS_OF_MEMCACHED = "ratelimit.memcache.multiget.__code=success"

ONE_BODY = {
    "hot key": json_body({"hot": "a"}),
    "over limit": json_body({"closed": "a"}),
    "two descriptors": json_body({"hot": "a"}, {"hot": "b"}),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `cpu_ms`: per 1,000 calls, fronts and partitions together; `messages`:
    of fronts to whoever has the counters, per 1,000 calls as well."""

    way: str
    scenario: str
    in_flight: int
    load: Load
    cpu_ms: float | None = None
    rss_mib: float | None = None
    refused: int = 0
    messages: float | None = None


def distinct_messages(keys: int, seed: int = 1) -> Iterator[bytes]:
    """Requests for `keys` different keys, in a random order, over and over."""
    messages = [request_from_json(json_body({"key": f"client-{n}"})) for n in range(keys)]
    random.Random(seed).shuffle(messages)
    return cycle(messages)


def run(scenarios: Sequence[str], share: float, *, with_memory: bool) -> None:
    """Measure and print. `share` scales the number of calls."""
    rows: list[Row] = []
    with TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        with tollgate_node() as node:
            told = partial(node.counter, CALLS_TO_PARTITIONS)
            rows += _grpc_rows(node, "tollgate", scenarios, folder, share, told)
            rows += _json_rows(node, folder, share)
            if with_memory:
                _print_memory(node, share)
        with redis_process() as redis, tollgate_node(REDIS_URL=redis.address) as node:
            told = partial(_reads_of, redis)
            rows += _grpc_rows(node, "counters in Redis", scenarios, folder, share / 2, told)
        with memcached() as cache, _node_of(cache) as node:
            told = partial(node.counter, READS_OF_MEMCACHED)
            rows += _grpc_rows(node, "counters in Memcached", scenarios, folder, share / 2, told)
        with tollgate_node(ENVOY_RULES) as node:
            _print_envoy(node, share)
        with tollgate_node(GRPC_FRONT="grpcio") as node:
            rows += _grpc_rows(node, "grpcio front", scenarios[:1], folder, share / 4)
        with plain_serve() as address:
            rows += _plain_rows(address, folder, share / 20)
    _print_table(rows)


def _node_of(cache: Memcached) -> AbstractContextManager[TollgateNode]:
    return tollgate_node(BACKEND_TYPE="memcache", MEMCACHE_HOST_PORT=cache.address)


def _reads_of(redis: RedisProcess) -> int:
    """How often it has read from a connection: once for an exchange, unless that is very long."""
    return int(redis.client.info("stats")["total_reads_processed"])


def _grpc_rows(
    node: TollgateNode,
    way: str,
    scenarios: Sequence[str],
    folder: Path,
    share: float,
    told: Callable[[], int] | None = None,
) -> Iterator[Row]:
    messages = distinct_messages(DISTINCT_KEYS)
    for scenario in scenarios:
        if scenario in ONE_BODY:
            load = partial(_load_one_body, node.grpc, _framed(folder, scenario))
        else:
            load = partial(_load_distinct, node.grpc, messages)
        load(calls=int(WARM_UP_CALLS * share), in_flight=IN_FLIGHT[-1])
        for in_flight in IN_FLIGHT:
            asked = partial(load, calls=_calls(in_flight, share))
            yield _measured(node, way, scenario, in_flight, asked, told)


def _json_rows(node: TollgateNode, folder: Path, share: float) -> Iterator[Row]:
    """The JSON door behind HAProxy and Serve, and on its own port, in turns."""
    body = folder / "hot.json"
    body.write_bytes(ONE_BODY["hot key"])
    for clients in JSON_CLIENTS:
        for way, url in (("JSON by Serve", node.url("/json")), ("JSON port", node.json_url)):
            load = partial(
                run_h2load,
                url,
                body,
                connections=clients,
                headers=("content-type: application/json",),
                is_http1=True,
            )
            load(calls=int(WARM_UP_CALLS * share / 4), in_flight=clients)
            calls = int(_calls(clients, share) / 4)
            measured = partial(load, calls=max(clients, calls))
            yield _measured(node, f"tollgate, {way}", "hot key", clients, measured)


def _plain_rows(address: tuple[str, int], folder: Path, share: float) -> Iterator[Row]:
    body = _framed(folder, "hot key")
    for in_flight in IN_FLIGHT:
        load = _load_one_body(address, body, calls=_calls(in_flight, share), in_flight=in_flight)
        yield Row("plain Serve", "hot key", in_flight, load)


def _measured(
    node: TollgateNode,
    way: str,
    scenario: str,
    in_flight: int,
    load: Callable[..., Load],
    told: Callable[[], int] | None = None,
) -> Row:
    sleep(2 * ASK_EVERY_S)  # until statistics have come of what was before
    before, refused = node.usage(), node.counter(BACKEND_ERROR)
    messages = told() if told else 0
    result = load(in_flight=in_flight)
    after = node.usage()
    sleep(2 * ASK_EVERY_S)
    decided = max(1, len(result.latencies_s))
    cpu_s = sum(after[name].cpu_s - before[name].cpu_s for name in after)
    return Row(
        way,
        scenario,
        in_flight,
        result,
        cpu_ms=cpu_s * 1e6 / decided,
        rss_mib=sum(usage.rss_bytes for usage in after.values()) / MIB,
        refused=node.counter(BACKEND_ERROR) - refused,
        messages=1_000 * (told() - messages) / decided if told else None,
    )


def _load_one_body(address: tuple[str, int], body: Path, *, calls: int, in_flight: int) -> Load:
    url = f"http://{address[0]}:{address[1]}{METHOD_PATH}"
    return run_h2load(url, body, calls=calls, in_flight=in_flight, connections=CONNECTIONS)


def _load_distinct(
    address: tuple[str, int], messages: Iterator[bytes], *, calls: int, in_flight: int
) -> Load:
    connections = min(CONNECTIONS, in_flight)
    return run_load(
        address, METHOD_PATH, messages, calls=calls, in_flight=in_flight, connections=connections
    )


def _framed(folder: Path, scenario: str) -> Path:
    """A file with the scenario's request as gRPC frames it."""
    message = request_from_json(ONE_BODY[scenario])
    path = folder / f"{scenario.replace(' ', '-')}.grpc"
    path.write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
    return path


def _calls(in_flight: int, share: float) -> int:
    return max(in_flight, int((SINGLE_CALLS if in_flight == 1 else SATURATING_CALLS) * share))


@contextmanager
def plain_serve() -> Iterator[tuple[str, int]]:
    """The baseline, running: its gRPC address."""
    command = [sys.executable, "-m", "scripts.benchmarks.plain_serve", str(free_port())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None, "its output is a pipe"
        assert process.stdin is not None, "and so is its input"
        yield ("127.0.0.1", int(process.stdout.readline()))
        process.stdin.close()
        process.wait()


def _print_memory(node: TollgateNode, share: float) -> None:
    """Memory over distinct keys: each is new, so plans, counters and series are all made anew."""
    table = Table("distinct requests", "front MiB", "partitions MiB", title="Memory")
    messages = (request_from_json(json_body({"key": f"visitor-{number}"})) for number in count())
    for round_number in range(MEMORY_ROUNDS + 1):
        if round_number:
            calls = int(MEMORY_CALLS * share)
            _load_distinct(node.grpc, messages, calls=calls, in_flight=IN_FLIGHT[-1])
        usage = node.usage()
        table.add_row(
            f"{int(round_number * MEMORY_CALLS * share):,}",
            f"{_rss_mib(usage, 'front'):.0f}",
            f"{_rss_mib(usage, 'partition'):.0f}",
        )
    Console().print(table)


def _print_envoy(node: TollgateNode, share: float) -> None:
    """Through a real Envoy that gives a decision its default 20 ms: how many does it give up?"""
    if not ENVOY.exists():
        Console().print("No Envoy in .cache/envoy: scripts/test fetches it. Left out.")
        return
    envoy = EnvoyProcess(ENVOY, node.folder / "envoy", node.grpc[1])
    empty = node.folder / "empty"
    empty.touch()
    load = partial(run_h2load, f"{envoy.url}/free", empty, headers=(), is_http1=True)
    table = Table("load", "req/s", "p50 ms", "p99 ms", "decisions", "errors", "per 10,000")
    table.title = "Through Envoy, timeout 20 ms"
    try:
        envoy.start()
        calls = int(ENVOY_CALLS * share)
        saturating = load(calls=calls, in_flight=ENVOY_CLIENTS)
        half = int(saturating.per_second / 2)
        # h2load's clients send at the same instants, so at half the rate there are fewer of them.
        loads = (("saturating", ENVOY_CLIENTS, None), ("half of that", ENVOY_CLIENTS // 4, half))
        for name, clients, per_second in loads:
            asked, errors = _envoy_counts(envoy)
            result = load(calls=calls, in_flight=clients, per_second=per_second)
            asked, errors = (
                n - b for n, b in zip(_envoy_counts(envoy), (asked, errors), strict=True)
            )
            table.add_row(
                name,
                f"{result.per_second:,.0f}",
                f"{result.quantile_s(0.5) * 1e3:.2f}",
                f"{result.quantile_s(0.99) * 1e3:.2f}",
                f"{asked:,}",
                str(errors),
                f"{errors * 10_000 / max(1, asked):.2f}",
            )
    finally:
        envoy.end()
    Console().print(table)


def _envoy_counts(envoy: EnvoyProcess) -> tuple[int, int]:
    """Decisions asked for, and those that failed or came too late."""
    good = envoy.statistic("cluster.service.ratelimit.ok")
    over = envoy.statistic("cluster.service.ratelimit.over_limit")
    errors = envoy.statistic("cluster.service.ratelimit.error")
    return good + over + errors, errors


def _rss_mib(usage: dict[str, Usage], prefix: str) -> float:
    return sum(used.rss_bytes for name, used in usage.items() if name.startswith(prefix)) / MIB


def _print_table(rows: Sequence[Row]) -> None:
    caption = (
        "ms of CPU and messages per 1,000 calls; memory: front, partitions. Messages: calls of "
        "partitions, reads of Redis; of Memcached look-ups, which increments follow, many together"
    )
    table = Table(title="Decisions", caption=caption)
    for column in ("way", "scenario"):
        table.add_column(column)
    for column in ("in flight", "req/s", "x grpcio", "p50 ms", "p99 ms", "p99.9 ms"):
        table.add_column(column, justify="right")
    for column in ("messages", "cpu ms", "MiB", "errors"):
        table.add_column(column, justify="right")
    base = {
        (row.scenario, row.in_flight): row.load.per_second
        for row in rows
        if row.way == "grpcio front"
    }
    for row in rows:
        peer = base.get((row.scenario, row.in_flight))
        table.add_row(
            row.way,
            row.scenario,
            str(row.in_flight),
            f"{row.load.per_second:,.0f}",
            f"{row.load.per_second / peer:.1f}" if peer else "",
            *(f"{row.load.quantile_s(share) * 1e3:.2f}" for share in (0.5, 0.99, 0.999)),
            "" if row.messages is None else f"{row.messages:,.1f}",
            "" if row.cpu_ms is None else f"{row.cpu_ms:.1f}",
            "" if row.rss_mib is None else f"{row.rss_mib:.0f}",
            str(row.load.errors + row.refused),
        )
    Console(width=120).print(table)


@click.command()
@click.option("--scenario", "scenarios", multiple=True, type=click.Choice([*ONE_BODY, DISTINCT]))
@click.option("--share", default=1.0, help="Scales the number of calls; 0.1 for a quick look.")
@click.option("--memory", "with_memory", is_flag=True, help="Also 5 million distinct requests.")
def ratelimit(scenarios: tuple[str, ...], share: float, with_memory: bool) -> None:
    """Requests per second, latency, CPU and memory of the rate-limit doors."""
    run(scenarios or (*ONE_BODY, DISTINCT), share, with_memory=with_memory)


@click.command()
@click.option("--share", default=1.0, help="Scales the number of calls; 0.1 for a quick look.")
@click.option("--setting", "settings", multiple=True, metavar="NAME=VALUE", help="Of the Tollgate.")
def envoy(share: float, settings: tuple[str, ...]) -> None:
    """Only through a real Envoy that waits 20 ms: how many decisions does it give up?"""
    given = dict(each.split("=", 1) for each in settings)
    with tollgate_node(ENVOY_RULES, **given) as node:
        _print_envoy(node, share)
