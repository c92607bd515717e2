"""The options that all deployments share: the figures by which Serve tells a replica that is gone,
or hangs, from one that is busy, and the order in which a new version comes in.

A process that has ended is noticed with the next check. One that hangs is replaced after three
checks without an answer: a busy machine may keep one waiting.

A replica of an earlier version is ended when its successor serves, one after the other. It goes on
for a while, until HAProxy calls the successor alone; when the node stops, nobody needs to wait.
"""

from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Of the replicas, rounded up: one more than there are at any other time.
SURGE_PERCENT = 1
DRAINING_PERIOD = "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S"
# On two cores with five times as much work as they can do it took HAProxy 2 s.
HEARD_WITHIN_S = 5.0

# The path that HAProxy asks, and what Serve's replicas answer while they wait for their end.
HEALTH_PATH, DRAINING = "/-/healthz", b"DRAINING"

REPLICA_OPTIONS: dict[str, Any] = {
    "max_surge_percent": SURGE_PERCENT,
    "health_check_period_s": 1.0,
    "health_check_timeout_s": 10.0,
    "ray_actor_options": {"num_cpus": 0},
    "logging_config": {"enable_access_log": False, "log_level": "WARNING"},
}


class HealthyUntilClosed:
    """Tells HAProxy that a replica is healthy until it closes its port. Serve's are not as soon as
    they are to end, and HAProxy, which knows of no other yet, would turn callers away."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_asked = scope["type"] == "http" and scope["path"] == HEALTH_PATH
        await self._app(scope, receive, _healthy_while_draining(send) if is_asked else send)


def _healthy_while_draining(send: Send) -> Send:
    begun: Message | None = None

    async def tell(message: Message) -> None:
        nonlocal begun
        if message["type"] == "http.response.start":
            begun = message
            return
        if begun is not None:
            is_draining = message.get("body") == DRAINING
            await send({**begun, "status": 200} if is_draining else begun)
            begun = None
        await send(message)

    return tell


def leave_at_once() -> None:
    """Has this process's replica, when it is ended, not wait for HAProxy to hear of that."""
    # Serve has no setting for it that can change. This is loaded already, in a replica.
    from ray.serve._private import replica

    setattr(replica, DRAINING_PERIOD, 0.0)
