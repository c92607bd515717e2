"""The options that all deployments share, above all the figures by which Serve tells a replica that
is gone, or hangs, from one that is busy.

A process that has ended is noticed with the next check. One that hangs is replaced after three
checks without an answer: a busy machine may keep one waiting.
"""

from typing import Any

REPLICA_OPTIONS: dict[str, Any] = {
    "health_check_period_s": 1.0,
    "health_check_timeout_s": 10.0,
    "ray_actor_options": {"num_cpus": 0},
    "logging_config": {"enable_access_log": False, "log_level": "WARNING"},
}
