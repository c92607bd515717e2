"""The rate-limit service as a Ray Serve deployment: one replica is one front process.

HTTP reaches it through Serve. For gRPC it listens itself, because calls must reach Python in
batches. Its threads: the front's pumps, one that follows the rules, one that keeps house.
"""

import asyncio
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

from ray import get_runtime_context
from ray import serve as ray_serve
from starlette.requests import Request
from starlette.responses import Response

from tollgate.actors.kernel.garbage_collection import spare_what_is_there
from tollgate.actors.ratelimit.watching.actor import generations
from tollgate.serve.ratelimit.fronts.batcher import CallBatcher
from tollgate.serve.ratelimit.fronts.front import unfailing
from tollgate.serve.ratelimit.health import Component
from tollgate.serve.ratelimit.json_endpoint import JsonEndpoint
from tollgate.serve.ratelimit.wiring import RateLimitActors, front_parts, rate_limit_actors
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import ErrorStatusCodes, Transport

LOG = logging.getLogger("tollgate.ratelimit")
KEEP_HOUSE_EVERY_S = 0.25
FIRST_RULES_WITHIN_S = 10.0
ONGOING_REQUESTS_MAX = 4_096
LOCAL_CACHE = "ratelimit.localcache."


@ray_serve.deployment(
    name="RateLimit",
    max_ongoing_requests=ONGOING_REQUESTS_MAX,
    ray_actor_options={"num_cpus": 0},
    graceful_shutdown_timeout_s=5,
    logging_config={"enable_access_log": False, "log_level": "WARNING"},
)
class RateLimit:
    """One front process: decides the calls of gRPC and HTTP."""

    def __init__(self, settings: Settings, run: str) -> None:
        self._settings = settings
        self._actors: RateLimitActors = rate_limit_actors(settings, run)
        self._parts = front_parts(settings, self._actors)
        self._has_rules = Event()
        self._is_stopped = Event()
        is_precise = settings.decision.error_status_codes is ErrorStatusCodes.PRECISE
        batcher = CallBatcher(unfailing(self._parts.service), ThreadPoolExecutor(1, "json"))
        self._json = JsonEndpoint(
            batcher.decide,
            self._parts.health,
            is_precise=is_precise,
            body_bytes_max=settings.bounds.request_bytes_max,
            elsewhere=_elsewhere(settings),
        )
        for work in (self._follow_rules, self._keep_house):
            Thread(target=work, name=work.__name__, daemon=True).start()
        if not settings.rules.starts_without_rules:
            self._has_rules.wait(FIRST_RULES_WITHIN_S)
        self._parts.front.start()
        spare_what_is_there()

    async def __call__(self, request: Request) -> Response:
        return await self._json.answer(request)

    async def describe(self) -> dict[str, object]:
        """The process and what it is bound to."""
        return {"pid": os.getpid(), "grpc": self._parts.front.address}

    async def drain(self, grace_s: float) -> None:
        """Report unhealthy, finish the calls in flight, close the gRPC port."""
        await asyncio.to_thread(self._parts.front.drain, grace_s)

    def _follow_rules(self) -> None:
        for generation in generations(self._actors.watcher, self._is_stopped):
            self._parts.decider.use_rules(generation.rules)
            has_domains = bool(generation.rules.domains)
            self._parts.health.set(Component.CONFIG, is_healthy=has_domains)
            self._has_rules.set()

    def _keep_house(self) -> None:
        """Send the statistics, see whether partitions are back, and say so to the health."""
        needs_backend = self._settings.counting.checks_backend
        has_statistics = self._settings.statistics.transport is not Transport.DISABLED
        pid, me = os.getpid(), get_runtime_context().current_actor
        while not self._is_stopped.wait(KEEP_HOUSE_EVERY_S):
            self._parts.store.probe()
            if needs_backend:
                self._parts.health.set(Component.BACKEND, is_healthy=not self._parts.store.down)
            self._show_local_cache()
            delta = self._parts.tallies.drain()
            if has_statistics:
                self._actors.operations.absorb.remote(delta, pid, me)

    def _show_local_cache(self) -> None:
        cache = self._parts.decider.cache
        if cache is None:
            return
        gauges = cache.gauges
        for name, value in (
            ("entryCount", len(cache)),
            ("evacuateCount", gauges.evacuate_count),
            ("expiredCount", gauges.expired_count),
            ("hitCount", gauges.hit_count),
            ("missCount", gauges.miss_count),
            ("lookupCount", gauges.lookup_count),
            ("overwriteCount", gauges.overwrite_count),
        ):
            self._parts.tallies.gauge(LOCAL_CACHE + name, value)


def _elsewhere(settings: Settings) -> tuple[str, ...]:
    """The services that Serve runs below prefixes of their own, which this one's `/` holds too."""
    services = {"/payments/": settings.payments.is_on, "/catalog-auth/": settings.catalog.is_on}
    return tuple(prefix for prefix, is_on in services.items() if is_on)


def application(settings: Settings, run: str) -> ray_serve.Application:
    """The application of one run."""
    door: ray_serve.Application = RateLimit.bind(settings, run)  # type: ignore[attr-defined]
    return door
