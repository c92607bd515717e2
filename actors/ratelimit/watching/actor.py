"""The config watcher as a Ray actor: it looks at the rules and tells every front (long poll).

Fronts ask for rules other than those they have and wait. A front that is late, and one
whose watcher was restarted, asks the same question and catches up.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import ray
from ray.exceptions import RayError

from tollgate.actors.kernel.actor import named_actor
from tollgate.actors.ratelimit.rules.rule_file import RuleFileError
from tollgate.actors.ratelimit.rules.rule_set import RuleSet, dump
from tollgate.actors.ratelimit.statistics.tallies import StatisticsDelta, Tallies
from tollgate.actors.ratelimit.watching.in_force import Generation
from tollgate.actors.ratelimit.watching.subscription import Subscription
from tollgate.actors.ratelimit.watching.watcher import Watcher

LOG = logging.getLogger("tollgate.rules")
WAITERS_MAX = 1_000
PATIENCE_S = 20.0
RETRY_S = 0.2


class ConfigWatcher:
    """Owns what is in force. `make_watcher` is called here, so that a restarted actor begins with
    what the archive holds by then; `look_every_s` is the longest time between two looks."""

    def __init__(
        self, make_watcher: Callable[[], Watcher | Subscription], look_every_s: float
    ) -> None:
        self._watcher = make_watcher()
        # As the last look left them: a look is made in a thread.
        self._in_force = self._watcher.generation
        self._error: RuleFileError | None = None
        self._look_every_s = look_every_s
        self._tallies = Tallies("watcher")
        self._counted: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._beginning = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None

    async def other_than(self, digest: str, patience_s: float) -> Generation | None:
        """The generation in force once its rules are others; None when patience ends first.

        `digest`: of the rules that the front has, for numbers begin anew with a watcher that has
        lost its archive.
        """
        await self._begin()
        generation = self._in_force
        if generation is not None and generation.rules.digest != digest:
            return generation
        try:
            async with asyncio.timeout(patience_s):
                await self._changed.wait()
        except TimeoutError:
            return None
        generation = self._in_force
        if generation is None or generation.rules.digest == digest:
            return None
        return generation

    async def describe(self) -> dict[str, object]:
        """The rules in force, and the error of the last load if it failed (the operator's line)."""
        await self._begin()
        generation, error = self._in_force, self._error
        return {
            "pid": os.getpid(),
            "generation": 0 if generation is None else generation.number,
            "domains": [] if generation is None else sorted(generation.rules.domains),
            "error": "" if error is None else error.located,
            **self._watcher.described(),
        }

    async def dump(self) -> str:
        """The rules in force, as the debug port prints them (B18); empty before there are any."""
        generation = self._in_force
        return "" if generation is None else dump(generation.rules)

    async def drain_statistics(self) -> StatisticsDelta:
        """What the watcher has counted since the last call, for the statistics."""
        for name, total in self._watcher.totals().items():
            if new := total - self._counted.get(name, 0):
                self._tallies.count(name, new)
                self._counted[name] = total
        for name, value in self._watcher.gauges().items():
            self._tallies.gauge(name, value)
        return self._tallies.drain()

    async def _begin(self) -> None:
        """Look for the first time, and from then on at intervals."""
        async with self._beginning:
            if self._watching is None or self._watching.done():
                await self._look()
                self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            await asyncio.to_thread(self._watcher.wait, self._look_every_s)
            await self._look()

    async def _look(self) -> None:
        number = self._in_force.number if self._in_force else 0
        # In a thread: a disk that is slow, as one in a network may be, is not a process that hangs.
        if not await asyncio.to_thread(self._watcher.look):
            return
        generation, error = self._watcher.generation, self._watcher.error
        self._in_force, self._error = generation, error
        if error is not None:
            LOG.error("rules not loaded, the last good ones stay in force: %s", error.located)
        elif generation is not None and generation.number != number:
            LOG.info(
                "rules loaded: generation %d, %d domains",
                generation.number,
                len(generation.rules.domains),
            )
            if self._watcher.archive_error is not None:
                LOG.error(
                    "rules in force, but not put away for a restart: %s",
                    self._watcher.archive_error,
                )
            self._changed.set()
            self._changed = asyncio.Event()


def start_watcher(name: str, namespace: str, *arguments: object) -> Any:
    """Create the named watcher, or find it. Its calls change nothing, so they may be retried."""
    options = {"max_task_retries": -1, "max_concurrency": WAITERS_MAX}
    return named_actor(ConfigWatcher, name, namespace, **options).remote(*arguments)


def generations(watcher: Any, is_stopped: Event) -> Iterator[Generation]:
    """Every generation that comes into force, until stopped. Blocks; outlives the watcher's death:
    the question is simply asked again of one that was restarted."""
    digest = ""
    while not is_stopped.is_set():
        try:
            question = watcher.other_than.remote(digest, PATIENCE_S)
            generation = ray.get(question, timeout=2 * PATIENCE_S)
        except RayError as error:
            LOG.warning(
                "the config watcher does not answer, asking again: %s", type(error).__name__
            )
            is_stopped.wait(RETRY_S)
            continue
        if generation is not None:
            digest = generation.rules.digest
            yield generation


def rule_sets(watcher: Any, is_stopped: Event) -> Iterator[RuleSet]:
    """The rules of `generations`."""
    return (generation.rules for generation in generations(watcher, is_stopped))
