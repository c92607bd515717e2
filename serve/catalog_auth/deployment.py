"""The catalog-auth service as a Ray Serve deployment: one replica is one process that judges,
repairs, resolves and signs. It keeps nothing, so replicas share nothing.
"""

import logging
import os
from functools import partial
from threading import Event, Thread
from typing import Any

import ray
from ray import get_runtime_context
from ray import serve as ray_serve
from ray.exceptions import RayError
from starlette.types import ASGIApp

from tollgate.actors.kernel.garbage_collection import spare_what_is_there
from tollgate.actors.operations.actor import send_statistics
from tollgate.actors.ratelimit.statistics.tallies import StatisticsReporter, Tallies
from tollgate.serve.catalog_auth.api.application import catalog_application
from tollgate.serve.catalog_auth.wiring import catalog_context
from tollgate.serve.node.logs import configure_logs
from tollgate.serve.node.replica_health import HEARD_WITHIN_S, REPLICA_OPTIONS, leave_at_once
from tollgate.serve.ratelimit.wiring import NAMESPACE, OPERATIONS
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import Transport

ROUTE_PREFIX = "/catalog-auth"
ONGOING_REQUESTS_MAX = 1_024
HAND_ON_EVERY_S = 1.0
LOG = logging.getLogger("tollgate.catalog")


@ray_serve.deployment(
    name="CatalogAuth",
    max_ongoing_requests=ONGOING_REQUESTS_MAX,
    graceful_shutdown_timeout_s=HEARD_WITHIN_S + 10,
    **REPLICA_OPTIONS,
)
@ray_serve.ingress()
class CatalogAuth:
    """One process of the service."""

    def __init__(self, settings: Settings) -> None:
        configure_logs(settings)
        context = catalog_context(settings)
        self._app = catalog_application(context)
        self._is_ending = Event()
        if settings.statistics.transport is not Transport.DISABLED:
            me = get_runtime_context().current_actor
            work = partial(_hand_on, context.tallies, me, self._is_ending)
            Thread(target=work, name="statistics", daemon=True).start()
        spare_what_is_there()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return self._app

    async def expect_end(self) -> None:
        """The node stops."""
        leave_at_once()

    def __del__(self) -> None:
        self._is_ending.set()


def _hand_on(tallies: Tallies, me: Any, is_ending: Event) -> None:
    """Sends what was counted to the rate limit's operations, as long as they are there. In a thread
    of its own, for to look for them blocks."""
    operations = None
    reporter = StatisticsReporter(
        tallies, lambda delta: operations and send_statistics(operations, os.getpid(), me, delta)
    )
    while not is_ending.wait(HAND_ON_EVERY_S):
        try:
            operations = operations or _running_operations()
            reporter.report()
        except RayError as error:
            LOG.warning("statistics could not be sent: %s", type(error).__name__)


def _running_operations() -> Any | None:
    """The actor that sums statistics up; None while nobody has started it. Blocks."""
    try:
        return ray.get_actor(OPERATIONS, NAMESPACE)
    except ValueError:
        return None


def application(settings: Settings) -> ray_serve.Application:
    """The application."""
    catalog = CatalogAuth.options(  # type: ignore[attr-defined]
        num_replicas=settings.catalog.replicas
    )
    door: ray_serve.Application = catalog.bind(settings)
    return door
