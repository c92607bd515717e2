"""Processes of a node that are killed under load: it is back by itself, and nothing is orphaned."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

import httpx
import psutil
import pytest

from tests.e2e.conftest import StartTollgate
from tests.e2e.payments.tills import MERCHANT
from tests.support.processes.tollgate import TollgateProcess
from tests.support.waiting import until

# A start on a busy machine; a caller who waits so long for one answer has been left hanging.
BACK_WITHIN_S = 200.0
ANSWER_WITHIN_S = 20.0
AGAIN = pytest.mark.repetition


@dataclass(slots=True)
class Callers:
    """One caller of each kind, one call after the other. `hung`: calls that nobody ended."""

    hung: list[str] = field(default_factory=list)
    answered: int = 0


@contextmanager
def calling(tollgate: TollgateProcess, key: str, merchant: str) -> Iterator[Callers]:
    callers, is_stopped = Callers(), Event()
    merchants = tollgate.url("PORT", f"/payments/merchants/{merchant}")
    pages = {tollgate.url("PORT", "/healthcheck"): None, merchants: httpx.BasicAuth("", key)}

    def call(url: str, auth: httpx.BasicAuth | None) -> None:
        while not is_stopped.wait(0.05):
            try:
                httpx.get(url, auth=auth, timeout=ANSWER_WITHIN_S)
                callers.answered += 1
            except httpx.TimeoutException:
                callers.hung.append(url)
            except httpx.TransportError:
                continue  # (refused, or cut: the caller knows)

    threads = [Thread(target=call, args=page) for page in pages.items()]
    for thread in threads:
        thread.start()
    try:
        yield callers
    finally:
        is_stopped.set()
        for thread in threads:
            thread.join()


def find(tollgate: TollgateProcess, pattern: str) -> psutil.Process | None:
    """The first process of the node whose command matches."""
    for process in psutil.Process(tollgate.pid).children(recursive=True):
        try:
            if re.search(pattern, " ".join(process.cmdline())):
                return process
        except psutil.NoSuchProcess:
            continue
    return None


def is_well(tollgate: TollgateProcess, victims: str, gone: psutil.Process) -> bool:
    """Whether another process is there for the one that is gone, and the doors answer."""
    successor = find(tollgate, victims)
    if successor is None or successor.pid == gone.pid:
        return False
    try:
        return httpx.get(tollgate.url("PORT", "/healthcheck"), timeout=2).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize(
    "victims",
    [
        pytest.param(("bin/haproxy", "raylet/raylet", "gcs_server"), id="HAProxy and Ray"),
        pytest.param(("::HAProxyManager", "::ProxyActor", "::ServeCon"), id="Serve", marks=AGAIN),
        pytest.param(("node.process", "::DashboardAgent"), id="the node, an agent", marks=AGAIN),
        pytest.param(("::Counter", "::Config", "::Operations"), id="the rate limit", marks=AGAIN),
        pytest.param(("::ServeReplica", "::LedgerShard"), id="replicas, a shard", marks=AGAIN),
    ],
)
def test_what_is_killed_is_back_by_itself(
    start_tollgate: StartTollgate, victims: tuple[str, ...], repetitions: Callable[[int], int]
) -> None:
    with start_tollgate({"DRAIN_GRACE": "1s"}) as tollgate:
        api = httpx.Client(base_url=tollgate.url("PORT", "/payments"), timeout=ANSWER_WITHIN_S)
        key = api.post("/apps").raise_for_status().json()["app"]["key"]
        api.auth = httpx.BasicAuth("", key)
        merchant = api.post("/merchants", json=MERCHANT).raise_for_status().json()["merchant"]["id"]
        supervisor = tollgate.pid
        with calling(tollgate, key, merchant) as callers:
            for victim in victims * repetitions(2):
                kill_and_wait(tollgate, victim)
                until(lambda: is_kept(api, merchant), "the books go on", BACK_WITHIN_S)
        assert callers.hung == []
        assert callers.answered > 0
        assert tollgate.pid == supervisor
        tollgate.down()
        until(lambda: tollgate.living() == [], "nothing is left")
        assert tollgate.taken_ports() == []


def kill_and_wait(tollgate: TollgateProcess, victim: str) -> None:
    tollgate.remember_processes()
    gone = find(tollgate, victim)
    assert gone is not None, f"{victim} runs"
    os.kill(gone.pid, signal.SIGKILL)
    until(lambda: is_well(tollgate, victim, gone), f"{victim} is back", BACK_WITHIN_S)


def is_kept(api: httpx.Client, merchant: str) -> bool:
    try:
        return api.get(f"/merchants/{merchant}").status_code == 200
    except httpx.TransportError:
        return False
