"""Named actors that outlive whoever made them: the shells of everything that owns state."""

from concurrent.futures import Future
from typing import Any

import ray
from ray.exceptions import RayActorError

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
        """End the process, also one that does not react; Ray starts the next. RayError when the
        word cannot be given."""
        ray.kill(self._handle, no_restart=False)
