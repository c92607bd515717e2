"""The pages of the debug port: rules, statistics and profiles, for operators (B18).

The index, `/rlconfig` and `/stats` read as the reference's do; any unknown path shows the index.
`/debug/pprof/…` looks into the processes of this machine, by the names that `processes` gives.
`/stats` prints plain names: extra tags say the same about every line, so they are left out.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import Protocol

import psutil
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tollgate.actors.ratelimit.statistics.totals import Statistics, times_name
from tollgate.serve.ratelimit.debug.access import require_key
from tollgate.serve.ratelimit.debug.counter_pages import CounterPages
from tollgate.serve.ratelimit.debug.profiler import (
    SECONDS_MAX,
    ProfileFormat,
    Profiler,
    ProfilerBusyError,
    ProfilingError,
    ProfilingRefusedError,
)

SECONDS_DEFAULT = 10
LINES_PER_PIECE = 1_000
_MIB = 1024 * 1024
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
_ROOT = "/debug/pprof/"

# The reference's lines, word for word, and three more.
_INDEX = {
    _ROOT: "root of various pprof endpoints. hit for help.",
    f"{_ROOT}memory": "memory endpoint",
    f"{_ROOT}profile": "CPU profiling endpoint",
    f"{_ROOT}stacks": "stacks endpoint",
    f"{_ROOT}trace": "trace endpoint",
    "/rlconfig": "print out the currently loaded configuration for debugging",
    "/rlconfig/source": "print out where the configuration comes from, and what became of it",
    "/stats": "print out stats",
}
_NO_RULES = """\
the config watcher does not answer: decisions go on by the rules that they have; it is replaced
within a minute, which the node's log tells
"""
_PROFILING_HELP = f"""\
{_ROOT}memory: memory of every process
{_ROOT}memory?process=P&seconds=N: what P allocates in N seconds and still holds, by line of
  code; with the header `Authorization: Bearer` and the value of DEBUG_TRACING_KEY
{_ROOT}profile?process=P&seconds=N&format=svg|speedscope|raw: where P spends its time
{_ROOT}stacks?process=P: what every thread of P is doing now
{_ROOT}trace?process=P&seconds=N: what P does over time, for chrome://tracing or ui.perfetto.dev

seconds: 1 to {SECONDS_MAX}, {SECONDS_DEFAULT} unless given. One profile is taken at a time.
process: one of these, the first unless given:
"""
_FORMATS = {
    "svg": (ProfileFormat.FLAMEGRAPH, "image/svg+xml"),
    "speedscope": (ProfileFormat.SPEEDSCOPE, "application/json"),
    "raw": (ProfileFormat.RAW, "text/plain"),
}


class AllocationTracing(Protocol):
    """Reaches into a process by name, to have it trace its allocations over an interval."""

    async def start(self, process: str) -> None: ...

    async def finish(self, process: str) -> str: ...


class DebugPort:
    """The pages, from callables that fetch what they show when they are asked.

    `dump_rules` and `describe_rules` give None when nobody can tell. `processes` gives pids of this
    machine by name, the one that matters most first. `tracing_key` is asked for before a process
    traces its allocations, which halves its speed meanwhile; empty: nobody may. All else looks at
    processes from outside, without stopping them.
    """

    def __init__(
        self,
        *,
        statistics: Callable[[], Awaitable[Statistics]],
        dump_rules: Callable[[], Awaitable[str | None]],
        processes: Callable[[], Awaitable[Mapping[str, int]]],
        allocations: AllocationTracing,
        counters: CounterPages | None = None,
        tracing_key: str = "",
        profiler: Profiler | None = None,
        describe_rules: Callable[[], Awaitable[Mapping[str, object] | None]] | None = None,
    ) -> None:
        self._statistics = statistics
        self._dump_rules = dump_rules
        self._describe_rules = describe_rules
        self._processes = processes
        self._profiler = profiler or Profiler()
        self._allocations = allocations
        self._counters = counters
        self._tracing_key = tracing_key
        self._allocations_lock = asyncio.Lock()

    def app(self) -> Starlette:
        """The app of the debug port."""
        return Starlette(
            routes=[
                Route("/rlconfig", self._rules),
                Route("/rlconfig/source", self._source_of_rules),
                Route("/stats", self._stats),
                *([] if self._counters is None else self._counters.routes()),
                Route(f"{_ROOT}memory", self._memory),
                Route(f"{_ROOT}profile", self._profile),
                Route(f"{_ROOT}stacks", self._stacks),
                Route(f"{_ROOT}trace", self._trace),
                Route(f"{_ROOT}{{rest:path}}", self._profiling_help),
                Route("/{rest:path}", self._index),
            ],
            exception_handlers={ProfilingError: _profiling_failed},
        )

    async def _index(self, _: Request) -> Response:
        lines = sorted(f"{path}: {text}\n" for path, text in _INDEX.items())
        return PlainTextResponse("".join(lines))

    async def _rules(self, _: Request) -> Response:
        rules = await self._dump_rules()
        return _silent_watcher() if rules is None else PlainTextResponse(rules)

    async def _source_of_rules(self, _: Request) -> Response:
        described = None if self._describe_rules is None else await self._describe_rules()
        return _silent_watcher() if described is None else JSONResponse(described)

    async def _stats(self, _: Request) -> Response:
        pieces = await run_in_threadpool(_statistics_pieces, await self._statistics())
        return StreamingResponse(_sent(pieces), media_type="text/plain")

    async def _profiling_help(self, _: Request) -> Response:
        names = "".join(
            f"  {name} (pid {pid})\n" for name, pid in (await self._processes()).items()
        )
        return PlainTextResponse(_PROFILING_HELP + names)

    async def _profile(self, request: Request) -> Response:
        asked = request.query_params.get("format", "svg")
        if asked not in _FORMATS:
            raise HTTPException(
                400, f"format must be one of {', '.join(_FORMATS)}, not '{asked}'\n"
            )
        form, media_type = _FORMATS[asked]
        _, pid = await self._process(request)
        profile = await self._profiler.record(pid, _seconds(request), form)
        return Response(profile, media_type=media_type)

    async def _trace(self, request: Request) -> Response:
        _, pid = await self._process(request)
        trace = await self._profiler.record(pid, _seconds(request), ProfileFormat.TRACE)
        return Response(trace, media_type="application/json")

    async def _stacks(self, request: Request) -> Response:
        _, pid = await self._process(request)
        return Response(await self._profiler.stacks(pid), media_type="text/plain")

    async def _memory(self, request: Request) -> Response:
        if "seconds" not in request.query_params:
            table = await run_in_threadpool(_memory_table, await self._processes())
            return PlainTextResponse(table)
        seconds = _seconds(request)
        name, _ = await self._process(request)
        require_key(request, self._tracing_key, "tracing slows a process down and")
        if self._allocations_lock.locked():
            raise ProfilerBusyError("allocations are being traced; try again when it is done")
        async with self._allocations_lock:
            await self._allocations.start(name)
            try:
                await asyncio.sleep(seconds)
            finally:
                # Also when this port is stopped: tracing costs the process half its speed.
                report = await asyncio.shield(self._allocations.finish(name))
        return PlainTextResponse(f"{name}, {seconds} s\n{report}")

    async def _process(self, request: Request) -> tuple[str, int]:
        """The name and pid of the process that is asked for."""
        processes = await self._processes()
        name = request.query_params.get("process") or next(iter(processes), "")
        if name not in processes:
            known = ", ".join(processes) or "none"
            raise HTTPException(404, f"no process '{name}' on this machine; there are: {known}\n")
        return name, processes[name]


def _silent_watcher() -> Response:
    return PlainTextResponse(_NO_RULES, status_code=503, headers={"Retry-After": "10"})


def _seconds(request: Request) -> int:
    text = request.query_params.get("seconds", str(SECONDS_DEFAULT))
    # Two digits are enough, and int() would read more than digits.
    if not (text.isascii() and text.isdigit() and len(text) <= 2 and 1 <= int(text) <= SECONDS_MAX):
        message = f"seconds must be a whole number from 1 to {SECONDS_MAX}, not '{text}'\n"
        raise HTTPException(400, message)
    return int(text)


def _statistics_lines(statistics: Statistics) -> Iterator[str]:
    """`<name>: <value>` per line. Response times are of all calls since the start."""
    for name, number in statistics.counters.items():
        yield f"{name}: {number}\n"
    for name, value in statistics.gauges.items():
        yield f"{name}: {value:.15g}\n"
    for method, latency in statistics.latencies.items():
        name = times_name(method)
        yield f"{name}.count: {latency.count}\n"
        yield f"{name}.sum_us: {round(latency.sum_s * 1_000_000)}\n"
        for quantile, share in _QUANTILES.items():
            yield f"{name}.{quantile}_us: {round(latency.quantile_s(share) * 1_000_000)}\n"


def _statistics_pieces(statistics: Statistics) -> list[bytes]:
    """The lines in order. Callers can make tens of thousands of series with long names: to sort
    them all would be one long step."""
    lines = _statistics_lines(statistics)
    sorted_parts = [*iter(lambda: sorted(islice(lines, LINES_PER_PIECE)), [])]
    merged = merge(*sorted_parts)
    return [*iter(lambda: "".join(islice(merged, LINES_PER_PIECE)).encode(), b"")]


async def _sent(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)


def _memory_table(processes: Mapping[str, int]) -> str:
    """Resident, proportional and unique memory per process, in MiB."""
    lines = [f"{'process':<24} {'pid':>8} {'rss_mib':>9} {'pss_mib':>9} {'uss_mib':>9}\n"]
    for name, pid in processes.items():
        try:
            memory = psutil.Process(pid).memory_full_info()
        except psutil.NoSuchProcess:
            lines.append(f"{name:<24} {pid:>8} has ended\n")
            continue
        except psutil.AccessDenied:
            lines.append(f"{name:<24} {pid:>8} not permitted: run as the same user or as root\n")
            continue
        sizes = (memory.rss, memory.pss, memory.uss)
        lines.append(f"{name:<24} {pid:>8} " + " ".join(f"{s / _MIB:>9.1f}" for s in sizes) + "\n")
    return "".join(lines)


async def _profiling_failed(_: Request, error: Exception) -> Response:
    match error:
        case ProfilerBusyError():
            status = 429
        case ProfilingRefusedError():
            status = 503
        case _:
            status = 500
    return PlainTextResponse(f"{error}\n", status_code=status)
