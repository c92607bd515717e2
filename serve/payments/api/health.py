"""The health of the books, as operators and load balancers hear of it: whether they can be read and
written, in one line, and what is counted and logged when storage does not answer a call."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.shard.client import NotSent, Unanswered
from tollgate.actors.ledger.storage.store import StorageDown
from tollgate.serve.payments.api.orders import RETRY_AFTER_S

LOG = logging.getLogger("tollgate.payments")
# Calls that were refused because the storage did not answer.
STORAGE_ERRORS = "payments.calls.storage_errors"
LOG_EVERY_S = 10.0
CHECK_WITHIN_S = 1.5
REMEMBERED_S = 1.0

Check = Callable[[], Awaitable[object]]


def _uncounted(_: str) -> None:
    """Nobody counts."""


class StorageWatch:
    """Counts calls that storage did not answer, and logs one of them now and then."""

    def __init__(self, clock: Clock, count: Callable[[str], None] = _uncounted) -> None:
        self._clock = clock
        self._count = count
        self._log_at_s: float | None = None

    def note(self, error: Exception) -> None:
        """Notes one such call."""
        self._count(STORAGE_ERRORS)
        now_s = self._clock.monotonic_s()
        if self._log_at_s is None or now_s >= self._log_at_s:
            self._log_at_s = now_s + LOG_EVERY_S
            LOG.error("callers hear 503, because the storage does not answer: %s", error)


class BooksHealth:
    """Checks by what cannot be done when they fail: "read", "written".

    A check fails when it raises StorageDown, Unanswered or NotSent, or takes longer than
    CHECK_WITHIN_S; what was found holds for REMEMBERED_S, so that nobody wears the storage out by
    asking.
    """

    def __init__(self, checks: Mapping[str, Check], clock: Clock) -> None:
        self._checks = checks
        self._clock = clock
        self._asking = asyncio.Lock()
        self._problem = ""
        self._until_s: float | None = None

    async def problem(self) -> str:
        """One line, or nothing when all is well."""
        async with self._asking:
            now_s = self._clock.monotonic_s()
            if self._until_s is None or now_s >= self._until_s:
                self._problem = await self._look()
                self._until_s = self._clock.monotonic_s() + REMEMBERED_S
            return self._problem

    async def answer(self, _: Request) -> Response:
        """The problem as a page: 200 and OK, or 503."""
        if problem := await self.problem():
            return PlainTextResponse(f"{problem}\n", 503, {"Retry-After": str(RETRY_AFTER_S)})
        return PlainTextResponse("OK")

    async def _look(self) -> str:
        found = await asyncio.gather(*(_fails(check) for check in self._checks.values()))
        away = [name for name, fails in zip(self._checks, found, strict=True) if fails]
        return f"the books cannot be {' or '.join(away)} at this moment" if away else ""


async def _fails(check: Check) -> bool:
    try:
        async with asyncio.timeout(CHECK_WITHIN_S):
            await check()
    except (StorageDown, Unanswered, NotSent, TimeoutError) as error:
        LOG.debug("a check of the books failed: %r", error)
        return True
    return False
