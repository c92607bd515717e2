"""The debug port over a real socket, looking into real processes."""

import asyncio
import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import httpx
import psutil
import pytest

from tollgate.actors.kernel.allocations import finish_tracing, start_tracing
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.actors.ratelimit.statistics.totals import Statistics, Totals
from tollgate.serve.net.listener import listen
from tollgate.serve.ratelimit.debug import profiler as profiler_module
from tollgate.serve.ratelimit.debug.port import DebugPort
from tollgate.serve.ratelimit.debug.profiler import Profiler, ProfilingError

Ask = Callable[[httpx.AsyncClient], Awaitable[None]]

RULE_LINE = "foo.k1_v1: unit=MINUTE requests_per_unit=3, shadow_mode: false, quota_mode: false\n"
# Some systems let a process be looked into by its ancestors alone, unless it says otherwise.
SET_PTRACER, ANY_PROCESS = 0x59616D61, -1
SPINNING = f"""
import ctypes
ctypes.CDLL(None).prctl({SET_PTRACER}, ctypes.c_ulong({ANY_PROCESS}))
def spin():
    print("spinning", flush=True)
    while True:
        pass
spin()
"""


class InThisProcess:
    """Traces this process, which allocates something meanwhile."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.held = b""

    async def start(self, process: str) -> None:
        self.asked.append(process)
        start_tracing()
        self.held = bytes(bytearray(2_000_000))

    async def finish(self, process: str) -> str:
        self.asked.append(process)
        return finish_tracing()


class Port:
    """A debug port with what it shows."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.rules: str | None = ""
        self.pids: dict[str, int] = {"operations": os.getpid()}
        self.profiler = Profiler()
        self.allocations = InThisProcess()
        self.tracing_key = ""

    async def statistics(self) -> Statistics:
        return self.totals.statistics()

    async def dump_rules(self) -> str | None:
        return self.rules

    async def processes(self) -> Mapping[str, int]:
        return self.pids

    def ask(self, asking: Ask) -> None:
        """Serve the port on a free address while `asking` asks."""

        async def main() -> None:
            app = DebugPort(
                statistics=self.statistics,
                dump_rules=self.dump_rules,
                processes=self.processes,
                allocations=self.allocations,
                profiler=self.profiler,
                tracing_key=self.tracing_key,
            ).app()
            async with await listen(app, "127.0.0.1", 0, what="debug") as listener:
                url = f"http://127.0.0.1:{listener.port}"
                async with httpx.AsyncClient(base_url=url, timeout=60) as client:
                    await asking(client)

        asyncio.run(main())

    def get(self, path: str, headers: Mapping[str, bytes] | None = None) -> httpx.Response:
        answers: list[httpx.Response] = []

        async def asking(client: httpx.AsyncClient) -> None:
            answers.append(await client.get(path, headers=headers))

        self.ask(asking)
        return answers[0]


@pytest.fixture
def port() -> Port:
    return Port()


@pytest.fixture
def spinning() -> Iterator[subprocess.Popen[str]]:
    """A process that does nothing but spin, in a function of that name."""
    with subprocess.Popen(
        [sys.executable, "-c", SPINNING], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "spinning\n"
        yield process
        process.kill()


def program(folder: Path, script: str) -> Path:
    """A program to be run in py-spy's place."""
    path = folder / "py-spy"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return path


# The index, the rules and the statistics


@pytest.mark.parametrize("path", ["/", "/nothing", "/nothing/here", "/rlconfig/", "/debug"])
def test_the_index_and_any_unknown_path(port: Port, path: str) -> None:
    answer = port.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == (
        "/debug/pprof/: root of various pprof endpoints. hit for help.\n"
        "/debug/pprof/memory: memory endpoint\n"
        "/debug/pprof/profile: CPU profiling endpoint\n"
        "/debug/pprof/stacks: stacks endpoint\n"
        "/debug/pprof/trace: trace endpoint\n"
        "/rlconfig/source: print out where the configuration comes from, and what became of it\n"
        "/rlconfig: print out the currently loaded configuration for debugging\n"
        "/stats: print out stats\n"
    )


def test_rules_before_any_are_loaded_are_an_empty_page(port: Port) -> None:
    answer = port.get("/rlconfig")
    assert (answer.status_code, answer.text) == (200, "")


@pytest.mark.parametrize("path", ["/rlconfig", "/rlconfig/source"])
def test_a_watcher_that_does_not_answer_is_named_as_the_reason(port: Port, path: str) -> None:
    port.rules = None
    answer = port.get(path)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert "the config watcher does not answer" in answer.text


def test_rules_are_shown_as_they_are_written(port: Port) -> None:
    port.rules = RULE_LINE
    answer = port.get("/rlconfig")
    assert answer.text == RULE_LINE
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_statistics_are_sorted_lines(port: Port) -> None:
    front = Tallies("front-1")
    rule = front.rule("basic.key1", is_dynamic=False)
    rule.total_hits += 3
    rule.within_limit += 3
    front.touch(rule)
    front.gauge("ratelimit.localcache.entryCount", 2)
    front.observe("ShouldRateLimit", 4, 0.00006)
    port.totals.absorb(front.drain(), 0.0)

    lines = port.get("/stats").text.splitlines()
    assert lines == sorted(lines)
    shown = dict(line.split(": ") for line in lines)
    assert shown["ratelimit.service.rate_limit.basic.key1.total_hits"] == "3"
    assert shown["ratelimit.service.rate_limit.basic.key1.over_limit"] == "0"
    assert shown["ratelimit.service.config_load_success"] == "0"
    assert shown["ratelimit.localcache.entryCount"] == "2"
    response_time = "ratelimit_server.ShouldRateLimit.response_time"
    assert shown[f"{response_time}.count"] == "4"
    assert shown[f"{response_time}.sum_us"] == "240"
    assert (
        50 <= int(shown[f"{response_time}.p50_us"]) <= int(shown[f"{response_time}.p99_us"]) <= 75
    )


# Looking into processes


@pytest.mark.parametrize("path", ["/debug/pprof/", "/debug/pprof/nothing"])
def test_the_profiling_page_says_what_can_be_asked(port: Port, path: str) -> None:
    port.pids["front"] = 12345
    text = port.get(path).text
    for page in ("memory", "profile", "stacks", "trace"):
        assert f"/debug/pprof/{page}?process=P" in text
    assert text.endswith(f"  operations (pid {os.getpid()})\n  front (pid 12345)\n")


def test_profiles_of_a_process(port: Port, spinning: subprocess.Popen[str]) -> None:
    port.pids["front"] = spinning.pid

    async def asking(client: httpx.AsyncClient) -> None:
        profile = "/debug/pprof/profile?process=front&seconds=1"
        flamegraph = await client.get(profile)
        assert flamegraph.headers["content-type"] == "image/svg+xml"
        assert "spin (" in flamegraph.text

        raw = await client.get(f"{profile}&format=raw")
        assert "spin (" in raw.text

        speedscope = await client.get(f"{profile}&format=speedscope")
        assert speedscope.headers["content-type"] == "application/json"
        frames = speedscope.json()["shared"]["frames"]
        assert "spin" in {frame["name"] for frame in frames}

        trace = await client.get("/debug/pprof/trace?process=front&seconds=1")
        assert trace.headers["content-type"] == "application/json"
        assert "spin" in {event["name"] for event in json.loads(trace.text)}

        stacks = await client.get("/debug/pprof/stacks?process=front")
        assert f"Process {spinning.pid}:" in stacks.text
        assert "spin (" in stacks.text

    port.ask(asking)


def test_the_process_of_the_debug_port_itself_is_the_first(port: Port) -> None:
    ctypes.CDLL(None).prctl(SET_PTRACER, ctypes.c_ulong(ANY_PROCESS))
    answer = port.get("/debug/pprof/stacks")
    assert answer.status_code == 200
    assert test_the_process_of_the_debug_port_itself_is_the_first.__name__ in answer.text


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("profile?seconds=0", 400, "seconds must be a whole number from 1 to 60, not '0'\n"),
        ("profile?seconds=61", 400, "seconds must be a whole number from 1 to 60, not '61'\n"),
        ("trace?seconds=1.5", 400, "seconds must be a whole number from 1 to 60, not '1.5'\n"),
        ("memory?seconds=", 400, "seconds must be a whole number from 1 to 60, not ''\n"),
        ("profile?format=pdf", 400, "format must be one of svg, speedscope, raw, not 'pdf'\n"),
        ("stacks?process=x", 404, "no process 'x' on this machine; there are: operations\n"),
        (
            "memory?process=x&seconds=1",
            404,
            "no process 'x' on this machine; there are: operations\n",
        ),
    ],
)
def test_what_cannot_be_asked(port: Port, path: str, status: int, text: str) -> None:
    answer = port.get(f"/debug/pprof/{path}")
    assert (answer.status_code, answer.text) == (status, text)
    assert port.allocations.asked == []


def test_a_process_that_has_ended(port: Port, spinning: subprocess.Popen[str]) -> None:
    spinning.kill()
    spinning.wait()
    port.pids["front"] = spinning.pid
    answer = port.get("/debug/pprof/stacks?process=front")
    assert answer.status_code == 500
    assert answer.text.startswith("py-spy failed: ")
    assert answer.text.count("\n") == 1


@pytest.mark.parametrize(
    "complaint",
    [
        "Permission Denied: Try running again with elevated permissions",
        "Error: Failed to get process executable name.\n 0: Permission denied (os error 13)",
        "Error: Operation not permitted (os error 1)",
    ],
)
def test_profiling_that_is_not_permitted(port: Port, tmp_path: Path, complaint: str) -> None:
    port.profiler = Profiler(program(tmp_path, f"echo '{complaint}' >&2; exit 1"))
    answer = port.get("/debug/pprof/profile?seconds=1")
    assert answer.status_code == 503
    assert answer.text == (
        "profiling is not permitted (ptrace): run as root, or grant SYS_PTRACE, "
        "or set kernel.yama.ptrace_scope to 0\n"
    )


def test_profiling_without_a_profiler(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler_module, "_installed_program", lambda: None)
    port.profiler = Profiler()
    answer = port.get("/debug/pprof/stacks")
    assert (answer.status_code, answer.text) == (
        503,
        "py-spy is not installed; install it to profile\n",
    )


def test_one_look_at_a_time(port: Port, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    port.profiler = Profiler(program(tmp_path, f"exec cat {gate}"))

    async def asking(client: httpx.AsyncClient) -> None:
        first = asyncio.create_task(client.get("/debug/pprof/stacks"))
        # Opens as soon as the first one's program reads.
        held = await asyncio.to_thread(gate.open, "w")
        with held:
            second = await client.get("/debug/pprof/profile?seconds=1")
            assert second.status_code == 429
            assert second.text == "another profile is being taken; try again when it is done\n"
            held.write("stacks\n")
        assert (await first).text == "stacks\n"

    port.ask(asking)


def test_a_profiler_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler_module, "_STARTING_S", 0.05)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    profiler = Profiler(program(tmp_path, f"exec cat {gate}"))
    with pytest.raises(ProfilingError, match=r"^py-spy did not end within 0\.05 s$"):
        asyncio.run(profiler.stacks(os.getpid()))
    assert [child for child in psutil.Process().children() if str(gate) in child.cmdline()] == []


def test_a_profile_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async def main() -> None:
        profiler = Profiler(program(tmp_path, f"exec cat {gate}"))
        looking = asyncio.create_task(profiler.stacks(os.getpid()))
        with await asyncio.to_thread(gate.open, "w"):
            looking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await looking
        # The next one is not refused for it.
        profiler._program = program(tmp_path, "echo stacks")
        assert await profiler.stacks(os.getpid()) == b"stacks\n"

    asyncio.run(main())
    assert [child for child in psutil.Process().children() if str(gate) in child.cmdline()] == []


# Memory


def test_memory_of_every_process(port: Port, spinning: subprocess.Popen[str]) -> None:
    port.pids["front"] = spinning.pid
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    port.pids["partition-0"] = ended.pid
    head, *rows = [line.split() for line in port.get("/debug/pprof/memory").text.splitlines()]
    assert head == ["process", "pid", "rss_mib", "pss_mib", "uss_mib"]
    assert [row[:2] for row in rows] == [[name, str(pid)] for name, pid in port.pids.items()]
    for row in rows[:2]:
        rss_mib, pss_mib, uss_mib = map(float, row[2:])
        assert rss_mib >= pss_mib >= uss_mib > 1
    assert rows[2][2:] == ["has", "ended"]


@pytest.mark.parametrize("given", ["", "Bearer ", "Bearer wrong", "Bearer \N{SNOWMAN}"])
def test_a_process_is_not_traced_without_the_key(port: Port, given: str) -> None:
    headers = {"Authorization": given.strip().encode()}
    for key in ("", "the key"):
        port.tracing_key = key
        answer = port.get("/debug/pprof/memory?process=operations&seconds=1", headers)
        assert answer.status_code == 403
        assert "DEBUG_TRACING_KEY" in answer.text
    assert port.allocations.asked == []


def test_looking_at_a_process_does_not_stop_it(port: Port, tmp_path: Path) -> None:
    port.profiler = Profiler(program(tmp_path, 'echo "$@" >&2; exit 1'))
    for look in ("profile?seconds=1", "trace?seconds=1", "stacks"):
        assert " --nonblocking " in port.get(f"/debug/pprof/{look}").text


def test_what_a_process_allocates(port: Port) -> None:
    port.tracing_key = "the key"
    headers = {"Authorization": b"Bearer the key"}
    answer = port.get("/debug/pprof/memory?process=operations&seconds=1", headers)
    assert answer.status_code == 200
    first, largest, *_, last = answer.text.splitlines()
    assert first == "operations, 1 s"
    assert f"{__file__}:" in largest
    assert last.split()[1:3] == ["KiB", "in"]
    assert port.allocations.asked == ["operations", "operations"]
    assert len(port.allocations.held) == 2_000_000
