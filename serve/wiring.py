"""The composition root: the settings in, what Serve runs out.

Only the node's process and Serve itself (`configs/serve.yaml`) import it.
"""

import uuid

from ray import serve as ray_serve

from tollgate.serve.catalog_auth import deployment as catalog_deployment
from tollgate.serve.payments import deployment as payments_deployment
from tollgate.serve.ratelimit import deployment as ratelimit_deployment
from tollgate.serve.settings import Settings, process_environment

# The names of the applications, and what people call the services.
RATELIMIT, PAYMENTS, CATALOG_AUTH = "ratelimit", "payments", "catalog-auth"
SERVICES = {RATELIMIT: "rate-limit", PAYMENTS: "payments", CATALOG_AUTH: "catalog-auth"}


def new_run() -> str:
    """A name for one deployment: restarted actors of the same run go on where they were."""
    return uuid.uuid4().hex


def applications(settings: Settings, run: str) -> list[ray_serve.RunTarget]:
    """The applications of a node that these settings turn on; the rate limit is the first."""
    targets = [ray_serve.RunTarget(ratelimit_deployment.application(settings, run), RATELIMIT, "/")]
    if settings.payments.is_on:
        payments = payments_deployment.application(settings, run)
        prefix = payments_deployment.ROUTE_PREFIX
        targets.append(ray_serve.RunTarget(payments, PAYMENTS, prefix))
    if settings.catalog.is_on:
        catalog = catalog_deployment.application(settings)
        prefix = catalog_deployment.ROUTE_PREFIX
        targets.append(ray_serve.RunTarget(catalog, CATALOG_AUTH, prefix))
    return targets


def build_ratelimit(_: dict[str, str]) -> ray_serve.Application:
    """The rate-limit application of a cluster, with the settings of its environment."""
    return ratelimit_deployment.application(_settings(), new_run())


def build_payments(_: dict[str, str]) -> ray_serve.Application:
    """The payments application of a cluster, with the settings of its environment."""
    return payments_deployment.application(_settings(), new_run())


def build_catalog_auth(_: dict[str, str]) -> ray_serve.Application:
    """The catalog-auth application of a cluster, with the settings of its environment."""
    return catalog_deployment.application(_settings())


def _settings() -> Settings:
    return Settings.from_environment(process_environment())
