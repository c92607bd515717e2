"""The pages of the debug port that show counters and reset them.

    GET  /counters?domain=D&entry=KEY=VALUE&max=N     who holds what
    POST /counters/reset?domain=D&entry=KEY=VALUE     says what it would do; with confirmed=true it
                                                      sets the counter of exactly these entries to 0

They name callers (their values stand in counters), and a reset admits who was refused: so both ask
for the key of the debug port. All that is asked stands in the query; a body is not read.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.operations.counter_desk import CounterList, ResetList
from tollgate.actors.ratelimit.counting.counter_row import CounterRow
from tollgate.actors.ratelimit.decision.counter_query import (
    CounterQuery,
    keys_of,
    label_of,
    limit_unit_of,
    typed_query,
)
from tollgate.serve.ratelimit.debug.access import require_key

ROWS_MAX = 10_000
ROWS_DEFAULT = 100
NEAR_MAX = 5
NEAR_AMONG_MAX = 2_000
ENTRIES_MAX = 64


class CounterAccess(Protocol):
    """Reaches the counters, wherever they are."""

    async def list(self, query: CounterQuery, rows_max: int) -> CounterList: ...

    async def find(self, keys: Sequence[bytes]) -> CounterList: ...

    async def reset(self, keys: Sequence[bytes]) -> ResetList: ...


class CounterPages:
    """`prefix`: of all counters' names. `key`: of the debug port; empty: nobody may. `elsewhere`:
    the store outside that holds the counters, in whose own tools one looks for them."""

    def __init__(
        self,
        counters: CounterAccess,
        clock: Clock,
        *,
        prefix: str,
        key: str,
        elsewhere: str = "",
    ) -> None:
        self._counters = counters
        self._clock = clock
        self._prefix = prefix
        self._key = key
        self._elsewhere = elsewhere

    def routes(self) -> list[Route]:
        """The routes of these pages."""
        return [
            Route("/counters", self._list, methods=["GET"]),
            Route("/counters/reset", self._reset, methods=["POST"]),
        ]

    async def _list(self, request: Request) -> Response:
        require_key(request, self._key, "counters name callers: showing them")
        self._refuse_elsewhere()
        query = typed_query(self._prefix, request.query_params.get("domain"), _entries(request))
        told = await self._counters.list(query, _rows_max(request))
        return JSONResponse(
            {
                "counters": self._documents(told),
                "isComplete": told.is_complete and not told.silent,
                "silentPartitions": told.silent,
            }
        )

    async def _reset(self, request: Request) -> Response:
        require_key(request, self._key, "resetting counters")
        self._refuse_elsewhere()
        domain, entries = request.query_params.get("domain"), _entries(request)
        full = tuple((key, value) for key, value in entries if value is not None)
        if not domain or not full or len(full) != len(entries):
            raise HTTPException(400, "name the domain, and every entry as key=value\n")
        keys = keys_of(self._prefix, domain, full)
        found = await self._counters.find(keys)
        counters = self._documents(found)
        if not counters:
            near = [] if found.silent else await self._near(domain, full)
            return JSONResponse(
                {"counters": [], "near": near, "silentPartitions": found.silent}, 404
            )
        if request.query_params.get("confirmed") != "true":
            return JSONResponse({"counters": counters, "silentPartitions": found.silent})
        told = await self._counters.reset(keys)
        documents = [
            _document(name, reset.row) | {"isReset": reset.failure is None, "why": reset.failure}
            for name, reset in told.resets
        ]
        # Whoever does not answer may have the counter, and may still reset it.
        is_done = not told.silent and all(each["isReset"] for each in documents)
        return JSONResponse(
            {"counters": documents, "silentPartitions": told.silent}, 200 if is_done else 503
        )

    def _refuse_elsewhere(self) -> None:
        if self._elsewhere:
            message = f"the counters are in {self._elsewhere}: look at them and reset them there\n"
            raise HTTPException(409, message)

    async def _near(self, domain: str, entries: Sequence[tuple[str, str]]) -> list[str]:
        """The names of live counters that are most like the one that is not there."""
        told = await self._counters.list(CounterQuery(), NEAR_AMONG_MAX)
        texts = {text for _, row in told.rows if (text := _text(row.key))}
        asked = " ".join([domain, *(f"{key}={value}" for key, value in entries)])
        return get_close_matches(asked, sorted(texts), NEAR_MAX, cutoff=0.4)

    def _documents(self, told: CounterList) -> list[Mapping[str, Any]]:
        now_s = self._clock.now_s()
        return [_document(name, row) for name, row in told.rows if row.end_s > now_s]


def _document(partition: str, row: CounterRow) -> dict[str, Any]:
    label = label_of(row.key)
    named: dict[str, Any] = (
        {"domain": None, "entries": [], "digest": row.key.hex()}
        if label is None
        else {
            "domain": label.domain,
            "entries": [f"{key}={value}" for key, value in label.entries],
        }
    )
    return named | {
        "unit": limit_unit_of(row.key).name.lower(),
        "windowEndsS": row.end_s,
        "hits": row.hits,
        "limit": row.limit,
        "partition": partition,
        "front": row.holder,
        "loans": row.loans,
    }


def _text(key: bytes) -> str | None:
    label = label_of(key)
    if label is None:
        return None
    return " ".join([label.domain, *(f"{name}={value}" for name, value in label.entries)])


def _entries(request: Request) -> tuple[tuple[str, str | None], ...]:
    texts = request.query_params.getlist("entry")
    if len(texts) > ENTRIES_MAX:
        raise HTTPException(400, f"at most {ENTRIES_MAX} entries can be asked for\n")
    entries: list[tuple[str, str | None]] = []
    for text in texts:
        key, separator, value = text.partition("=")
        if not key:
            raise HTTPException(400, f"malformed entry '{text}': write key=value\n")
        entries.append((key, value if separator else None))
    return tuple(entries)


def _rows_max(request: Request) -> int:
    text = request.query_params.get("max", str(ROWS_DEFAULT))
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(ROWS_MAX))
    if not (is_number and 1 <= int(text) <= ROWS_MAX):
        message = f"max must be a whole number from 1 to {ROWS_MAX}, not '{text}'\n"
        raise HTTPException(400, message)
    return int(text)
