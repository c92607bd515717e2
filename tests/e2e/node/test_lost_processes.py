"""Processes that are killed while traffic flows: what callers see, and that all of it comes back.

The service runs with FAILURE_MODE=error, the default: a call whose counter is out of reach ends
with an error.
"""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.e2e.callers import Call, grpc_traffic
from tests.support.processes.tollgate import TollgateProcess
from tests.support.waiting import until

# COUNTER_DEADLINE of these tests is 1 s; the rest is for a busy machine.
ENDS_WITHIN_S = 5.0
TENANTS = [f"tenant={number}" for number in range(6)]


def processes(debug: httpx.Client) -> dict[str, int]:
    """The processes that the debug port knows; none while it is away."""
    try:
        listing = debug.get("/debug/pprof/").text
    except httpx.TransportError:
        return {}
    return {name: int(pid) for name, pid in re.findall(r"^  (\S+) \(pid (\d+)\)$", listing, re.M)}


def kill(debug: httpx.Client, name: str) -> int:
    pid = until(lambda: processes(debug).get(name), f"{name} is known")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    return pid


def wait_for_another(debug: httpx.Client, name: str, pid: int) -> None:
    until(
        lambda: processes(debug).get(name, pid) != pid,
        f"another process is {name} in place of {pid}",
    )


def is_about(subject: str) -> Callable[[Call], bool]:
    return lambda call: call.about == subject and not call.error


def test_a_killed_partition_fails_its_own_calls_quickly_and_comes_back(
    tollgate: TollgateProcess, http: httpx.Client, debug: httpx.Client
) -> None:
    with grpc_traffic(tollgate.grpc_address, "e2e", TENANTS) as traffic:
        for tenant in TENANTS:
            traffic.next_call(is_about(tenant), "calls succeed before")
        pid = kill(debug, "partition-0")
        lost = traffic.next_call(lambda call: bool(call.error), "a call meets the lost partition")
        assert http.get("/healthcheck").status_code == 200
        traffic.next_call(is_about(lost.about), "calls succeed again")
        for tenant in TENANTS:
            traffic.next_call(is_about(tenant), "calls succeed afterwards")
    wait_for_another(debug, "partition-0", pid)

    calls = traffic.calls
    failed = [call for call in calls if call.error]
    assert {call.error for call in failed} <= {
        "UNKNOWN: counter partition 0 is not answering",
        "UNKNOWN: counter partition 0 did not answer within 1000 ms",
    }
    assert max(call.took_s for call in calls) < ENDS_WITHIN_S
    subjects = {call.about for call in failed}
    assert 0 < len(subjects) < len(TENANTS), "only what the partition counts is lost"
    for tenant in TENANTS:
        used = [c.limit - c.remaining for c in calls if c.about == tenant and not c.error]
        anew = [i for i in range(1, len(used)) if used[i] < used[i - 1]]
        assert len(anew) == (tenant in subjects), "the lost counters begin anew, once"
        begins = anew[0] if anew else len(used)
        assert used[:begins] == list(range(used[0], used[0] + begins))
        # A call that ended with an error may still have been counted in the new process.
        unseen = sum(call.about == tenant for call in failed)
        first = used[begins] if anew else 1
        assert 1 <= first <= 1 + unseen
        assert used[begins:] == list(range(first, first + len(used) - begins))


def test_a_killed_watcher_changes_nothing_and_comes_back(
    tollgate: TollgateProcess, rules: Path, debug: httpx.Client
) -> None:
    with grpc_traffic(tollgate.grpc_address, "e2e", TENANTS[:2]) as traffic:
        traffic.next_call(is_about(TENANTS[0]), "calls succeed before")
        pid = kill(debug, "watcher")
        wait_for_another(debug, "watcher", pid)
        traffic.next_call(is_about(TENANTS[0]), "calls succeed afterwards")
        file = rules / "added.yaml"
        file.write_text("domain: added\ndescriptors: [{key: k, rate_limit: {unlimited: true}}]\n")
        until(lambda: "added.k: " in debug.get("/rlconfig").text, "rules are reloaded again")
        file.unlink()
        until(lambda: "added.k: " not in debug.get("/rlconfig").text, "and again")
    assert [call for call in traffic.calls if call.error] == []
    assert {call.limit for call in traffic.calls} == {1_000_000}
    assert max(call.took_s for call in traffic.calls) < ENDS_WITHIN_S


def test_a_killed_operations_actor_harms_no_call_and_its_ports_come_back(
    tollgate: TollgateProcess, debug: httpx.Client
) -> None:
    with grpc_traffic(tollgate.grpc_address, "e2e", TENANTS[:2]) as traffic:
        traffic.next_call(is_about(TENANTS[0]), "calls succeed before")
        pid = kill(debug, "operations")
        wait_for_another(debug, "operations", pid)
        hits = re.compile(r"^ratelimit\.service\.rate_limit\.e2e\.tenant\.total_hits: [1-9]", re.M)
        until(lambda: hits.search(debug.get("/stats").text), "the debug port counts again")
        metrics = httpx.get(tollgate.url("PULLMETRICS_PORT", "/metrics"))
        assert "ratelimit_service_rate_limit_total_hits" in metrics.text
    assert [call for call in traffic.calls if call.error] == []
    assert max(call.took_s for call in traffic.calls) < ENDS_WITHIN_S
