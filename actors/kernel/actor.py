"""Named actors that outlive whoever made them: the shells of everything that owns state."""

from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import psutil
import ray
from ray._private.state import actors as rows_of_actors
from ray.exceptions import RayActorError
from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_put
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

ALIVE = 2  # of Ray's ActorTableData.ActorState; no other value is a process that can answer


def named_actor(kind: type, name: str, namespace: str, **options: Any) -> Any:
    """An actor to be called with what its class takes: `.remote(…)` makes it, or finds the one that
    has the name. It is restarted for ever, and takes no processor from anybody's share.

    `concurrency_groups`: how many threads some of its methods have for themselves.
    """
    groups = options.pop("concurrency_groups", {})
    # (Ray takes these where a class becomes an actor's, and all others where an actor is made)
    remote: Any = ray.remote
    actor_class = remote(concurrency_groups=groups)(kind) if groups else remote(kind)
    return actor_class.options(
        name=name,
        namespace=namespace,
        get_if_exists=True,
        lifetime="detached",
        max_restarts=-1,
        num_cpus=0,
        enable_task_events=False,
        **options,
    )


class ActorSeat:
    """The place of a named actor, whose process is asked to describe itself, and can be ended."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def ping(self) -> "Future[Any]":
        """Ask for a sign of life. RayError when it cannot be sent."""
        answer: Future[Any] = self._handle.describe.options(max_task_retries=0).remote().future()
        return answer

    def is_away(self, failure: BaseException | None) -> bool:
        """True while no process is there, or it is still being started, and if a ping failed
        because of that."""
        # A ping alone does not tell: Ray keeps one for a process that is being started.
        state = self._handle._get_local_state()
        return isinstance(failure, RayActorError) or state not in (None, ALIVE)

    def end(self) -> None:
        """End the process; Ray starts the next. Raises what `end_process` does."""
        end_process(self._handle, no_restart=False)


def end_process(handle: Any, *, no_restart: bool) -> None:
    """Have an actor's process ended, also one that does not react. Does not wait until it is done;
    RayError when the word cannot be given.

    Ray asks a process to end itself before it ends it, and leaves it alone when it cannot connect
    to it, as to one that was stopped before it was first asked: so its node is told to end it, too.
    """
    row = rows_of_actors(handle._actor_id.hex())
    ray.kill(handle, no_restart=no_restart)
    node_id = row.get("Address", {}).get("NodeID", "")
    if not node_id or not row["Pid"]:
        return  # no process was ever there
    there = NodeAffinitySchedulingStrategy(node_id, soft=False)
    remote: Any = ray.remote
    kill = remote(num_cpus=0, max_retries=0, enable_task_events=False)(_kill)
    kill.options(scheduling_strategy=there).remote(row["Pid"], row["ActorClassName"])


def _kill(pid: int, class_name: str) -> None:
    """End a process of this machine, if it is still that of an actor of this class."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if "".join(process.cmdline()).startswith(f"ray::{class_name}"):
            process.kill()


def is_started_again() -> bool:
    """True in the process of an actor whose earlier one has ended."""
    return bool(ray.get_runtime_context().was_current_actor_reconstructed)


def next_incarnation(name: str) -> int:
    """A number for this start of a named actor, higher than those of all its earlier ones.

    Ray's own key-value store keeps it, which lives as long as the cluster. Each
    number is taken by one start, even if two are under way.
    """
    key = f"tollgate:incarnation:{name}"
    number = int(_internal_kv_get(key) or 0) + 1
    while _internal_kv_put(f"{key}:{number}", b"taken", overwrite=False):  # (it was there already)
        number += 1
    _internal_kv_put(key, b"%d" % number)
    return number
