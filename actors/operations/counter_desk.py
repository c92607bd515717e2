"""Lists and resets counters for operators, by asking every partition."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tollgate.actors.ratelimit.counting.counter_row import CounterReset, CounterRow
from tollgate.actors.ratelimit.decision.counter_query import CounterQuery

PAGES_MAX = 16_384  # of one partition, each of which looks at about 1,024 counters
PAGE_WITHIN_S = 10.0
RESET_WITHIN_S = 30.0  # more than a partition waits for what is lent, with the longest term


class ActorCall(Protocol):
    """Calls a method of an actor: what it returns, or None when the actor does not answer."""

    def __call__(self, method: Any, *arguments: object, within_s: float) -> Awaitable[Any]: ...


@dataclass(slots=True)
class CounterList:
    """Rows by the name of their partition. `silent`: partitions that have not answered."""

    rows: list[tuple[str, CounterRow]] = field(default_factory=list)
    is_complete: bool = True
    silent: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ResetList:
    """What became of each counter, by the name of its partition."""

    resets: list[tuple[str, CounterReset]] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)


class CounterDesk:
    """`partitions`: handles by name."""

    def __init__(self, partitions: Mapping[str, Any], answer: ActorCall) -> None:
        self._partitions = partitions
        self._answer = answer

    async def list(self, query: CounterQuery, rows_max: int) -> CounterList:
        """Up to so many counters that a query asks for."""
        told = CounterList()
        for name, handle in self._partitions.items():
            after = None
            for _ in range(PAGES_MAX):
                page = await self._answer(
                    handle.list_counters, query.matches, after, within_s=PAGE_WITHIN_S
                )
                if page is None:
                    told.silent.append(name)
                    break
                told.rows += [(name, row) for row in page.rows]
                if len(told.rows) > rows_max:
                    del told.rows[rows_max:]
                    told.is_complete = False
                    return told
                after = page.after
                if after is None:
                    break
        return told

    async def find(self, keys: Sequence[bytes]) -> CounterList:
        """The counters of these keys."""
        told = CounterList()
        found = await self._ask_all("find_counters", keys, within_s=PAGE_WITHIN_S)
        for name, rows in found.items():
            if rows is None:
                told.silent.append(name)
            else:
                told.rows += [(name, row) for row in rows]
        return told

    async def reset(self, keys: Sequence[bytes]) -> ResetList:
        """Set the counters of these keys to 0, wherever they are."""
        told = ResetList()
        done = await self._ask_all("reset_counters", keys, within_s=RESET_WITHIN_S)
        for name, resets in done.items():
            if resets is None:
                told.silent.append(name)
            else:
                told.resets += [(name, reset) for reset in resets]
        return told

    async def _ask_all(self, method: str, *arguments: object, within_s: float) -> dict[str, Any]:
        """What each partition answers, all of which are asked at once: one that hangs keeps nobody
        waiting but itself."""
        calls = (
            self._answer(getattr(handle, method), *arguments, within_s=within_s)
            for handle in self._partitions.values()
        )
        return dict(zip(self._partitions, await asyncio.gather(*calls), strict=True))
