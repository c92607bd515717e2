"""A database connection: it runs statements, and begins nothing by itself.

Statements are built by SQLAlchemy's Core and compiled once (`statements.py`); the driver itself
runs them.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

RowValues = tuple[object, ...]
# A statement, and the rows of values it is run with, one after the other.
StatementRows = tuple[str, list[RowValues]]


@dataclass(frozen=True, slots=True)
class Guard:
    """A query, and what is to be raised for the rows that it finds. `check` may run on the thread
    of a connection."""

    text: str
    values: Sequence[object]
    check: Callable[[list[Any]], None]


class Connection(Protocol):
    """One caller at a time. Errors are the driver's own: `errors.FAILURES`."""

    async def fetch(self, text: str, values: Sequence[object] = ()) -> list[Any]:
        """Every row of a query, as tuples."""

    async def run(self, text: str) -> None:
        """A statement without values."""

    async def run_all(self, steps: Sequence[StatementRows]) -> None:
        """These steps in order, in as few calls of the driver as can be."""

    async def begin(self, text: str, guard: Guard, steps: Sequence[StatementRows]) -> None:
        """Begins a transaction and runs these steps in it, unless the guard raises: its owner ends
        it in both cases. In as few calls of the driver as can be."""

    async def roll_back(self) -> None:
        """Ends a transaction that failed, if there is still one, and somebody to tell."""

    async def close(self) -> None:
        """Whatever is under way on it is dropped; closing twice is no harm."""

    @property
    def is_open(self) -> bool: ...

    def with_timeout(self, timeout_s: float) -> "Connection":
        """The same connection, whose queries may take so long."""


@asynccontextmanager
async def transaction(connection: Connection, begin: str) -> AsyncIterator[None]:
    """Commits at the end; whatever is raised inside, or by the commit, rolls back what it can."""
    await connection.run(begin)
    async with until_the_end(connection):
        yield


@asynccontextmanager
async def until_the_end(connection: Connection) -> AsyncIterator[None]:
    """As `transaction`, of one that is begun inside."""
    is_over = False
    try:
        yield
        await connection.run("COMMIT")
        is_over = True
    finally:
        if not is_over:
            await connection.roll_back()
