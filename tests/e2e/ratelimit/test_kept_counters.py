"""Counters outlive a Tollgate: a stop, another way of counting, a loss of power, another number of
partitions."""

from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.conftest import StartTollgate
from tests.support.processes.tollgate import TollgateProcess
from tests.support.ratelimit.journals import counts_of
from tests.support.waiting import until
from tollgate.actors.ratelimit.snapshots.journal_folder import JournalFolder, JournalName
from tollgate.actors.ratelimit.snapshots.restoration import Restoration

LIMIT = 1_000_000  # (a year's, of each tenant)
TENANTS = [f"kept-{number}" for number in range(8)]


def hit(tollgate: TollgateProcess, tenant: str) -> int:
    """Count one; the count after it."""
    entries = [{"key": "tenant", "value": tenant}]
    question = {"domain": "e2e", "descriptors": [{"entries": entries}]}
    answer = httpx.post(tollgate.url("JSON_PORT", "/json"), json=question, timeout=60)
    assert answer.status_code == 200, answer.text
    return LIMIT - int(answer.json()["statuses"][0]["limitRemaining"])


def hits_on_disk(folder: Path, partitions: int) -> int:
    """All hits that a Tollgate would find that starts now."""
    names = [JournalName(number, partitions) for number in range(partitions)]
    found = [counts_of(Restoration(JournalFolder(folder), name).counters()) for name in names]
    return sum(sum(each.values()) for each in found)


def visible(folder: Path) -> list[str]:
    """The files there, but for drafts."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def pull_the_plug(tollgate: TollgateProcess) -> None:
    """Kill all of its processes, the first one first, so that nobody starts another."""
    node = psutil.Process(tollgate.pid)
    processes = [node, *node.children(recursive=True)]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=60)


@pytest.mark.parametrize("starts", [2, pytest.param(3, marks=pytest.mark.repetition)])
def test_counters_go_on_where_they_were(
    start_tollgate: StartTollgate, rules: Path, starts: int
) -> None:
    settings = {
        "RUNTIME_ROOT": str(rules.parent),
        "RUNTIME_APPDIRECTORY": rules.name,
        "RUNTIME_WATCH_ROOT": "false",
        "PAYMENTS_ENABLED": "false",
        "CATALOG_ENABLED": "false",
        "DRAIN_GRACE": "1s",
    }
    with start_tollgate(settings) as tollgate:
        folder = tollgate.data / "ratelimit" / "counters"
        for tenant in TENANTS:
            assert [hit(tollgate, tenant) for _ in range(3)] == [1, 2, 3]
        until(lambda: hits_on_disk(folder, 2) == 3 * len(TENANTS), "it is on disk")
        pull_the_plug(tollgate)
        tollgate.environment |= {"COUNTING": "direct", "COUNTER_PARTITIONS": "3"}
        journals = [JournalName(number, 3).file_name for number in range(3)]
        count = 3
        for _ in range(1, starts):
            tollgate.up()
            assert {hit(tollgate, tenant) for tenant in TENANTS} == {count + 1}
            until(lambda: visible(folder) == journals, "those of before are not needed any more")
            assert {hit(tollgate, tenant) for tenant in TENANTS} == {count + 2}
            # What was counted within the last second is written by the stop.
            assert tollgate.down().returncode == 0
            count += 2
            assert hits_on_disk(folder, 3) == count * len(TENANTS)
