"""The options that all deployments share: the figures by which Serve tells a replica that is gone,
or hangs, from one that is busy, and the order in which a new version comes in.

A process that has ended is noticed with the next check. One that hangs is replaced after three
checks without an answer: a busy machine may keep one waiting.

A replica of an earlier version is ended when its successor serves, one after the other. It goes on
for a while, until HAProxy calls the successor alone; when the node stops, nobody needs to wait.
"""

from typing import Any

# Of the replicas, rounded up: one more than there are at any other time.
SURGE_PERCENT = 1
DRAINING_PERIOD = "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S"
# On two cores with five times as much work as they can do it took HAProxy 2 s.
HEARD_WITHIN_S = 5.0

REPLICA_OPTIONS: dict[str, Any] = {
    "max_surge_percent": SURGE_PERCENT,
    "health_check_period_s": 1.0,
    "health_check_timeout_s": 10.0,
    "ray_actor_options": {"num_cpus": 0},
    "logging_config": {"enable_access_log": False, "log_level": "WARNING"},
}


def leave_at_once() -> None:
    """Has this process's replica, when it is ended, not wait for HAProxy to hear of that."""
    # Serve has no setting for it that can change. This is loaded already, in a replica.
    from ray.serve._private import replica

    setattr(replica, DRAINING_PERIOD, 0.0)
