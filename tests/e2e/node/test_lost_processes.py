"""Processes that are killed while traffic flows: what callers see, and that all of it comes back.

The service runs with FAILURE_MODE=error, the default: a call whose counter can be counted by nobody
ends with an error.
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
from tollgate.actors.ratelimit.lending.asks import LOST, NO_ANSWER
from tollgate.actors.ratelimit.lending.lender import RECOVERING

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


def test_a_killed_partition_takes_no_count_with_it_and_comes_back(
    tollgate: TollgateProcess, http: httpx.Client, debug: httpx.Client
) -> None:
    with grpc_traffic(tollgate.grpc_address, "e2e", TENANTS) as traffic:
        for tenant in TENANTS:
            traffic.next_call(is_about(tenant), "calls succeed before")
        pid = kill(debug, "partition-0")
        assert http.get("/healthcheck").status_code == 200
        wait_for_another(debug, "partition-0", pid)
        for tenant in TENANTS:
            traffic.next_call(is_about(tenant), "calls succeed afterwards")

    # The front counts on by itself, but not for ever: a busy machine may take longer to start the
    # partition again.
    failed = [call for call in traffic.calls if call.error]
    assert {call.error for call in failed} <= {
        f"UNKNOWN: {reason}" for reason in (NO_ANSWER, LOST, RECOVERING)
    }
    for tenant in TENANTS:
        about = [call for call in traffic.calls if call.about == tenant]
        used = [call.limit - call.remaining for call in about if not call.error]
        assert used == sorted(set(used)), "no count begins anew"
        # A call that ended with an error may have been counted.
        unseen = len(about) - len(used)
        assert used[-1] - used[0] + 1 <= len(used) + unseen


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
