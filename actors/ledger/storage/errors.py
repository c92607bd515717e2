"""The errors of storage that cannot go on, and what a driver's error means for a commit."""

import sqlite3

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from tollgate.actors.ledger.storage.tables import SEQ_RULE


class StorageError(Exception):
    """The storage is not fit for use, or not the one that was meant: one line, with what to do."""


# What comes up when a disk, a lock, a server or a network fails: from the drivers, and from
# SQLAlchemy around them. A pool whose connections all wait for a server that is away is exhausted.
FAILURES: tuple[type[Exception], ...] = (
    sqlite3.Error,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    DBAPIError,
    PoolExhausted,
    OSError,
    TimeoutError,
)


# What Python says of a value that it cannot hand to a driver: nothing has reached the storage.
UNWRITABLE = (TypeError, ValueError, ArithmeticError)


def is_seq_taken(error: Exception) -> bool:
    """Tells whether another writer has already written an entry with one of these numbers (F1)."""
    match error:
        case asyncpg.UniqueViolationError(constraint_name=str(name)):
            return name == SEQ_RULE
        case sqlite3.IntegrityError():
            return str(error) == "UNIQUE constraint failed: entries.book, entries.seq"
    return False


def is_about_content(error: Exception) -> bool:
    """Tells whether what was to be written is to blame: it breaks a rule of the tables,
    or no column holds its value."""
    return isinstance(
        error,
        sqlite3.IntegrityError
        | sqlite3.DataError
        | asyncpg.IntegrityConstraintViolationError
        | asyncpg.DataError,
    )


def reason(failure: Exception) -> str:
    """The failure on one line."""
    cause = failure.orig if isinstance(failure, DBAPIError) else failure
    return " ".join(str(cause).split()) or type(cause).__name__
