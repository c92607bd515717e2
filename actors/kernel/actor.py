"""Named actors that outlive whoever made them: the shells of everything that owns state."""

from typing import Any

import ray


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
