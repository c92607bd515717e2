"""Named actors that outlive whoever made them: the shells of everything that owns state."""

from typing import Any

import ray


def named_actor(kind: type, name: str, namespace: str, **options: Any) -> Any:
    """An actor to be called with what its class takes: `.remote(…)` makes it, or finds the one that
    has the name. It is restarted for ever, and takes no processor from anybody's share."""
    return ray.remote(kind).options(
        name=name,
        namespace=namespace,
        get_if_exists=True,
        lifetime="detached",
        max_restarts=-1,
        num_cpus=0,
        enable_task_events=False,
        **options,
    )
