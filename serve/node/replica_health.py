"""The options that all deployments share: the figures by which Serve tells a replica that is gone,
or hangs, from one that is busy, and the order in which a new version comes in.

A process that has ended is noticed with the next check. One that hangs is replaced after three
checks without an answer: a busy machine may keep one waiting.

A replica of another version is ended when its successor serves, one after the other.
"""

from typing import Any

# Of the replicas, rounded up: one more than there are at any other time.
SURGE_PERCENT = 1

REPLICA_OPTIONS: dict[str, Any] = {
    "max_surge_percent": SURGE_PERCENT,
    "health_check_period_s": 1.0,
    "health_check_timeout_s": 10.0,
    "ray_actor_options": {"num_cpus": 0},
    "logging_config": {"enable_access_log": False, "log_level": "WARNING"},
}
