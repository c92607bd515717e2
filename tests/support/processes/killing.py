"""Processes of a running Tollgate by name, killed one at a time under load, and what came of it."""

import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.processes.service_load import Heard, ServiceLoad
from tests.support.processes.tollgate import TollgateProcess
from tests.support.waiting import until

# A start on a busy machine.
BACK_WITHIN_S = 200.0
# Right for so long, and whoever was to be disturbed has been.
SETTLED_S = 1.5
# What follows the name of an actor, or of a dashboard's process, in its title.
TITLE_ENDS = re.compile(r"[.#(]|-\d")
# Each is there while it is needed, and nobody waits for another one.
PASSING = frozenset({"ray::IDLE", "resource_tracker", "forkserver"})


@dataclass(frozen=True, slots=True)
class ServiceRecovery:
    """`back_s`: from the kill to the first right answer after which no other was wrong; 0: none
    was wrong. `heard`: the wrong ones."""

    back_s: float
    longest_s: float
    heard: Counter[str]
    indefinite: tuple[Heard, ...]


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of one kill. `replaced_s`: until another process had its name."""

    victim: str
    replaced_s: float
    services: dict[str, ServiceRecovery]

    @property
    def longest_s(self) -> float:
        return max(each.longest_s for each in self.services.values())


def processes(tollgate: TollgateProcess) -> Iterator[tuple[str, psutil.Process]]:
    """Every process that a start has made, the supervisor left out, by a name that its successor
    will have too."""
    for process in psutil.Process(tollgate.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            words = process.cmdline()
            if words and (name := name_of(words)) not in PASSING:
                yield name, process


def name_of(words: list[str]) -> str:
    if not Path(words[0]).name.startswith("python"):
        return TITLE_ENDS.split(Path(words[0]).name)[0]
    said = " ".join(words)
    for name in ("resource_tracker", "forkserver"):
        if f"multiprocessing.{name}" in said:
            return name
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    return Path(script).name


def kill(
    tollgate: TollgateProcess,
    load: ServiceLoad,
    victim: str,
    with_signal: signal.Signals = signal.SIGKILL,
) -> Recovery:
    """Kills one process of this name, or stops it for others to notice; returns when another is
    there in its place and all services answer right. Fails when that takes longer than
    BACK_WITHIN_S."""
    tollgate.remember_processes()
    before = {process.pid: process for name, process in processes(tollgate) if name == victim}
    assert before, f"{victim} runs"
    killed_s = time.monotonic()
    next(iter(before.values())).send_signal(with_signal)

    def has_successor() -> bool:
        with suppress(psutil.NoSuchProcess):
            pids = [process.pid for name, process in processes(tollgate) if name == victim]
            return len(pids) >= len(before) and any(pid not in before for pid in pids)
        return False

    until(has_successor, f"another {victim} is there", BACK_WITHIN_S)
    replaced_s = time.monotonic() - killed_s
    until(
        lambda: load.are_right_since(killed_s, SETTLED_S),
        f"all services answer after {victim} was killed",
        BACK_WITHIN_S,
    )
    return Recovery(victim, replaced_s, {s: _recovery(c, killed_s) for s, c in load.calls.items()})


def _recovery(calls: list[Heard], killed_s: float) -> ServiceRecovery:
    since = [call for call in [*calls] if call.ended_s >= killed_s]
    wrong = [call for call in since if not call.is_right]
    back_s = 0.0
    if wrong:
        last_s = wrong[-1].ended_s
        back_s = next(each.ended_s for each in since if each.begun_s >= last_s) - killed_s
    return ServiceRecovery(
        back_s,
        max(call.took_s for call in since),
        Counter(call.said for call in wrong),
        tuple(call for call in wrong if not call.is_definite),
    )
