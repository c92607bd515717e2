"""A node is lost, with a partition that two fronts press: another node goes on from its copy.

No journal is kept here, so what nobody has at home is known from the copy alone.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tests.integration.conftest import NAMESPACE, pid_of
from tests.support.processes.ray_node import RayNode, ray_node
from tests.support.ratelimit.journals import Counts, counts_of
from tests.support.ratelimit.lent_fronts import LentFront, Question
from tests.support.ratelimit.pressing_fronts import (
    Admissions,
    PressingFront,
    Quota,
    admissions,
)
from tests.support.waiting import until
from tollgate.actors.kernel.actor import named_actor
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.actor import start_lent_partitions

DAY_S = 86_400
# Longer than a busy machine keeps a front from saying that it is there.
TERMS = Terms(term_s=15.0)
DEADLINE_S = 120.0
ANSWER_WITHIN_S = 180.0
WITHIN_S = 300.0
# By how many hits each limit is used up.
STEPS = {10: 1, 1_000: 10, 1_000_000: 5_000}
UNDER_WAY = 50
"""Answers after which the load is well under way, and far from its end."""
QUIET = b"nobody asks for it any more"
QUIET_LIMIT = 1_000


@pytest.fixture
def other_node(local_ray: None, tmp_path: Path) -> Iterator[RayNode]:
    """A node beside that of the tier."""
    folder = tmp_path / "node"
    folder.mkdir()
    with ray_node(folder, ray.get_runtime_context().gcs_address) as node:
        yield node


class Scene:
    """Two partitions on two nodes, and fronts on the one that stays. `lost`: the partition that is
    on the other node."""

    def __init__(
        self, name: str, folder: Path, node: RayNode, end_after: Callable[..., Any]
    ) -> None:
        self._name = name
        self._folder = folder
        self._node = node
        self._end_after = end_after
        self._attempts = 0
        self.end_s = (int(SystemClock().now_s()) // DAY_S + 3) * DAY_S
        self.partitions: list[Any] = until(self._spread, "each is on a node", WITHIN_S)
        self.lost = [node.runs(pid_of(each)) for each in self.partitions].index(True)
        self.quotas = [
            Quota(self.lost, DAY_S, limit, by, self.end_s) for limit, by in STEPS.items()
        ]

    def _spread(self) -> list[Any] | None:
        """Partitions on different nodes; a node that is new is not known everywhere at once."""
        self._attempts += 1
        names = [f"{self._name}-{self._attempts}-{number}" for number in range(2)]
        started = start_lent_partitions(names, NAMESPACE, TERMS, SystemClock())
        if len({self._node.runs(pid_of(each)) for each in started}) == 2:
            return [self._end_after(each) for each in started]
        for each in started:
            ray.kill(each)
        return None

    def quiet_front(self, name: str) -> Any:
        """A front that asks when it is told to."""
        return self._front(LentFront, name, DEADLINE_S, TERMS, self.end_s)

    def pressing_front(self, name: str) -> Any:
        """A front that asks for all there is."""
        record = str(self._folder / name)
        return self._front(PressingFront, name, self.quotas, TERMS, DEADLINE_S, record)

    def _front(self, kind: type, name: str, *arguments: object) -> Any:
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        full_name = f"{self._name}-{name}"
        actor = named_actor(
            kind, full_name, NAMESPACE, max_task_retries=0, scheduling_strategy=here
        )
        front = self._end_after(actor.remote(full_name, self.partitions, *arguments))
        pid_of(front)
        return front

    def ask(self, front: Any, times: int = 1) -> list[int | str]:
        """Count hits on the counter that nobody presses."""
        question: Question = (self.lost, QUIET, QUIET_LIMIT)
        answers: list[int | str] = ray.get(
            front.ask.remote(question, times), timeout=ANSWER_WITHIN_S
        )
        return answers

    def copied(self) -> Counts:
        """The counters of the lost partition that the other one holds."""
        holder = self.partitions[1 - self.lost]
        page = ray.get(holder.copy_page.remote(self.lost, 0), timeout=ANSWER_WITHIN_S)
        return counts_of(page.counters)

    def is_back(self, pid: int) -> bool:
        with suppress(RayError):
            return pid_of(self.partitions[self.lost]) != pid
        return False

    def is_under_way(self, front: Any) -> bool:
        answered = ray.get(front.answered.remote(), timeout=ANSWER_WITHIN_S)
        return bool(answered[self.lost] >= UNDER_WAY)

    def is_used_up(self, front: Any) -> bool:
        refused = ray.get(front.refused.remote(), timeout=ANSWER_WITHIN_S)
        return bool(refused == set(range(len(self.quotas))))

    def admitted(self, *names: str) -> Admissions:
        return sum((admissions(self._folder / name) for name in names), Counter())


def test_counters_of_a_lost_node_go_on_from_their_copy(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    other_node: RayNode,
    end_after: Callable[[Any], Any],
) -> None:
    scene = Scene(request.node.name, tmp_path, other_node, end_after)
    quiet = scene.quiet_front("quiet")
    assert scene.ask(quiet, 7) == [*range(1, 8)]
    until(lambda: scene.copied().get((scene.end_s, QUIET)) == 7, "it is copied", WITHIN_S)
    ray.kill(quiet)
    names = ("first", "second")
    fronts = [scene.pressing_front(name) for name in names]
    ray.get([front.press.remote() for front in fronts], timeout=ANSWER_WITHIN_S)
    for front in fronts:
        until(lambda front=front: scene.is_under_way(front), "all are asking", WITHIN_S)
    pid = pid_of(scene.partitions[scene.lost])
    other_node.kill()
    until(lambda: scene.is_back(pid), "the partition is back, on the node that is left", WITHIN_S)
    for front in fronts:
        until(lambda front=front: scene.is_used_up(front), "all is refused", WITHIN_S)
    admitted = scene.admitted(*names)
    for number, quota in enumerate(scene.quotas):
        # Of each front one call was lost, which the copy may know of.
        least = quota.limit - len(fronts) * quota.by
        assert least <= admitted[number, quota.end_s] <= quota.limit, quota
    other = scene.quiet_front("other")
    until(lambda: scene.ask(other) == [8], "the quiet counter goes on", WITHIN_S)
