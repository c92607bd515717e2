"""The config watcher as a real actor, and the fronts that follow it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import ray

from tests.integration.conftest import NAMESPACE, kill
from tests.support.waiting import until
from tollgate.actors.kernel.atomic_file import replace_file
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.watching import actor as watching
from tollgate.actors.ratelimit.watching.actor import generations, start_watcher
from tollgate.actors.ratelimit.watching.in_force import LOAD_ERROR, LOAD_SUCCESS, Generation
from tollgate.actors.ratelimit.watching.watcher import Watcher
from tollgate.serve.ratelimit.rule_sources.files import FileArchive, RuleDirectory

LOOK_EVERY_S = 0.02
LOAD = partial(load_rules, merge_domains=False)
BROKEN = "domain: shop\ndescriptors: [{key: k, rate_limit: {unit: fortnight}}]\n"
WHAT_IS_WRONG = "shop.yaml:2: invalid rate limit unit 'fortnight'"


def rule_text(limit: int) -> str:
    rule = f"{{key: k, rate_limit: {{unit: hour, requests_per_unit: {limit}}}}}"
    return f"domain: shop\ndescriptors: [{rule}]\n"


class Watched:
    """Rule files with their watcher."""

    def __init__(self, folder: Path, name: str, end_after: Callable[[Any], Any]) -> None:
        self._name = name
        self._end_after = end_after
        self._archive = folder / "archive.json"
        self._rules = folder / "config"
        self._rules.mkdir()
        self.write(rule_text(1))

    def write(self, text: str) -> None:
        """Put this into the only rule file, at once: none is seen that is half written."""
        replace_file(self._rules / "shop.yaml", text.encode())

    def lose_archive(self) -> None:
        self._archive.unlink()

    def start(self, run: str) -> Any:
        """The watcher of this run."""
        source = RuleDirectory(
            root=self._rules.parent,
            subdirectory="",
            app_directory=self._rules.name,
            watches_root=False,
            ignores_dot_files=True,
        )
        make = partial(Watcher, run, source, FileArchive(self._archive), LOAD)
        name = f"{self._name}-{run}"
        return self._end_after(start_watcher(name, NAMESPACE, make, LOOK_EVERY_S))


@pytest.fixture
def watched(
    tmp_path: Path, request: pytest.FixtureRequest, end_after: Callable[[Any], Any]
) -> Watched:
    return Watched(tmp_path, request.node.name, end_after)


def described(watcher: Any) -> dict[str, Any]:
    description: dict[str, Any] = ray.get(watcher.describe.remote(), timeout=60)
    return description


def in_force(watcher: Any) -> tuple[int, str]:
    """The generation, and the error of the last load."""
    found = described(watcher)
    return found["generation"], found["error"]


def limit_of(generation: Generation) -> int:
    (domain,) = generation.rules.domains.values()
    (rule,) = domain.exact.values()
    assert rule.limit is not None
    return rule.limit.requests_per_unit


class Follower:
    """A front: it takes every generation that `generations` gives, in a thread of its own."""

    def __init__(self, watcher: Any) -> None:
        self.generations: list[Generation] = []
        self._watcher = watcher
        self._is_stopped = Event()
        self._thread = Thread(target=self._follow)

    def __enter__(self) -> "Follower":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._is_stopped.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def wait_for(self, number: int) -> None:
        until(lambda: self.numbers[-1:] == [number], f"the front follows generation {number}")

    @property
    def numbers(self) -> list[int]:
        return [generation.number for generation in self.generations]

    def _follow(self) -> None:
        for generation in generations(self._watcher, self._is_stopped):
            self.generations.append(generation)


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A front asks again after this time, which is how it comes to see that it was stopped."""
    monkeypatch.setattr(watching, "PATIENCE_S", 0.5)


def test_a_change_is_a_new_generation_for_every_front(watched: Watched) -> None:
    watcher = watched.start("run")
    with Follower(watcher) as first, Follower(watcher) as second:
        first.wait_for(1)
        watched.write(rule_text(2))
        first.wait_for(2)
        second.wait_for(2)
    assert [limit_of(generation) for generation in first.generations] == [1, 2]
    assert first.generations == second.generations
    assert in_force(watcher) == (2, "")


def test_a_watcher_that_lost_its_archive_and_its_numbers_is_followed(watched: Watched) -> None:
    watcher = watched.start("run")
    with Follower(watcher) as front:
        front.wait_for(1)
        watched.lose_archive()
        watched.write(rule_text(2))
        kill(watcher)
        until(lambda: len(front.generations) == 2, "the front has the rules of the new watcher")
    assert front.numbers == [1, 1]
    assert [limit_of(generation) for generation in front.generations] == [1, 2]


def test_a_bad_set_changes_nothing_and_is_told(watched: Watched) -> None:
    watcher = watched.start("run")
    with Follower(watcher) as front:
        front.wait_for(1)
        watched.write(BROKEN)
        until(lambda: in_force(watcher) == (1, WHAT_IS_WRONG), "the error is told")
        watched.write(rule_text(3))
        front.wait_for(2)
    assert front.numbers == [1, 2]
    assert in_force(watcher) == (2, "")
    counts = ray.get(watcher.drain_statistics.remote()).counts
    assert counts == {LOAD_SUCCESS: 2, LOAD_ERROR: 1}


def test_a_restart_goes_on_from_the_last_good_rules(watched: Watched) -> None:
    watcher = watched.start("run")
    with Follower(watcher) as front:
        front.wait_for(1)
        watched.write(rule_text(2))
        front.wait_for(2)
        watched.write(BROKEN)
        until(lambda: in_force(watcher) == (2, WHAT_IS_WRONG), "the error is told")
        killed = kill(watcher)
        until(lambda: described(watcher)["pid"] != killed, "another process watches")
        # It never saw the good files; it has them from the archive.
        assert in_force(watcher) == (2, WHAT_IS_WRONG)
        with Follower(watcher) as late:
            late.wait_for(2)
        assert [limit_of(generation) for generation in late.generations] == [2]
        watched.write(rule_text(3))
        front.wait_for(3)
    assert [limit_of(generation) for generation in front.generations] == [1, 2, 3]


def test_another_run_does_not_begin_with_old_rules(watched: Watched) -> None:
    with Follower(watched.start("first")) as front:
        front.wait_for(1)
    watched.write(BROKEN)
    assert in_force(watched.start("second")) == (0, WHAT_IS_WRONG)


def test_a_late_front_gets_what_is_in_force(watched: Watched) -> None:
    watcher = watched.start("run")
    with Follower(watcher) as front:
        for number in (1, 2, 3):
            watched.write(rule_text(number))
            front.wait_for(number)
    with Follower(watcher) as late:
        late.wait_for(3)
    assert late.numbers == [3]


def test_following_ends_when_it_is_stopped(watched: Watched) -> None:
    watcher = watched.start("run")
    front = Follower(watcher)
    with front:
        front.wait_for(1)
        front.stop()
        watched.write(rule_text(2))
        until(lambda: in_force(watcher) == (2, ""), "the rules are in force")
    assert front.numbers == [1]
