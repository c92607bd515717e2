"""The catalog-auth service as a Ray Serve deployment: one replica is one process that judges,
repairs, resolves and signs. It keeps nothing, so replicas share nothing.
"""

from ray import serve as ray_serve
from starlette.types import ASGIApp

from tollgate.actors.kernel.garbage_collection import spare_what_is_there
from tollgate.serve.catalog_auth.api.application import catalog_application
from tollgate.serve.catalog_auth.wiring import catalog_context
from tollgate.serve.node.logs import configure_logs
from tollgate.serve.node.replica_health import HEARD_WITHIN_S, REPLICA_OPTIONS, leave_at_once
from tollgate.serve.settings import Settings

ROUTE_PREFIX = "/catalog-auth"
ONGOING_REQUESTS_MAX = 1_024


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
        self._app = catalog_application(catalog_context(settings))
        spare_what_is_there()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return self._app

    async def expect_end(self) -> None:
        """The node stops."""
        leave_at_once()


def application(settings: Settings) -> ray_serve.Application:
    """The application."""
    catalog = CatalogAuth.options(  # type: ignore[attr-defined]
        num_replicas=settings.catalog.replicas
    )
    door: ray_serve.Application = catalog.bind(settings)
    return door
