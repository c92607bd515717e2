"""The rate-limit service as a Ray Serve deployment: every replica is a front process, and all of
them listen at the same ports.

HTTP reaches it through Serve. For gRPC it listens itself, because calls must reach Python in
batches.
"""

import asyncio
import logging
import os
import sys
from functools import partial

from ray import get_runtime_context
from ray import serve as ray_serve
from starlette.requests import Request
from starlette.responses import Response

from tollgate.actors.kernel.garbage_collection import spare_what_is_there
from tollgate.actors.operations.actor import send_statistics
from tollgate.serve.node.replica_health import HEARD_WITHIN_S, REPLICA_OPTIONS, leave_at_once
from tollgate.serve.ratelimit.wiring import (
    front_process,
    json_endpoint,
    json_exchange,
    rate_limit_actors,
)
from tollgate.serve.settings import Settings

LOG = logging.getLogger("tollgate.ratelimit")
SHUTDOWN_MARGIN_S = 5.0
ONGOING_REQUESTS_MAX = 4_096
# The longest turn of a thread while others wait. With Python's own, 5 ms, one that decides large
# batches has a call beside it wait for 14 ms, nearly as long as a proxy does. It costs no more.
TURN_S = 0.001


@ray_serve.deployment(
    name="RateLimit",
    max_ongoing_requests=ONGOING_REQUESTS_MAX,
    **REPLICA_OPTIONS,
)
class RateLimit:
    """One front process: decides the calls of gRPC and HTTP."""

    def __init__(self, settings: Settings, run: str) -> None:
        sys.setswitchinterval(TURN_S)
        self._grace_s = settings.process.drain_grace_s
        actors = rate_limit_actors(settings, run)
        send = partial(
            send_statistics, actors.operations, os.getpid(), get_runtime_context().current_actor
        )
        process = self._process = front_process(settings, actors, send)
        exchange = json_exchange(settings, process.service.health, _elsewhere(settings))
        self._json = json_endpoint(process.service, exchange)
        process.start(waits_for_rules=not settings.rules.starts_without_rules)
        spare_what_is_there()

    async def __call__(self, request: Request) -> Response:
        return await self._json.answer(request)

    async def describe(self) -> dict[str, object]:
        """The process and what it is bound to."""
        process = self._process
        return {
            "pid": os.getpid(),
            "grpc": process.front.address,
            "json": process.json_door.address,
        }

    async def check_health(self) -> None:
        """Serve asks this every few seconds, and replaces a replica for which it raises."""
        self._process.check()

    async def expect_end(self) -> None:
        """The node stops."""
        leave_at_once()

    async def drain(self, grace_s: float) -> None:
        """Report unhealthy, finish the calls in flight, close the gRPC port: the node stops."""
        await asyncio.to_thread(self._process.drain, grace_s)

    async def __del__(self) -> None:
        """Serve awaits this when it stops a replica: at a new deployment, or with fewer of them."""
        await asyncio.to_thread(self._process.drain, self._grace_s, hands_over=True)
        self._process.stop()


def _elsewhere(settings: Settings) -> tuple[str, ...]:
    """The services that Serve runs below prefixes of their own, which this one's `/` holds too."""
    services = {"/payments/": settings.payments.is_on, "/catalog-auth/": settings.catalog.is_on}
    return tuple(prefix for prefix, is_on in services.items() if is_on)


def application(settings: Settings, run: str) -> ray_serve.Application:
    """The application of one run."""
    # Two fronts cannot listen at one unix socket.
    surge = {"max_surge_percent": 0} if settings.grpc.uds else {}
    deployment = RateLimit.options(  # type: ignore[attr-defined]
        **surge,
        num_replicas=settings.grpc.processes,
        graceful_shutdown_timeout_s=HEARD_WITHIN_S
        + settings.process.drain_grace_s
        + SHUTDOWN_MARGIN_S,
    )
    bound: ray_serve.Application = deployment.bind(settings, run)
    return bound
