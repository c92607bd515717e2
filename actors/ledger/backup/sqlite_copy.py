"""A copy of the SQLite file while it is in use (F9): whole, of one moment, and compact."""

import os
from pathlib import Path

from tollgate.actors.kernel.atomic_file import make_durable
from tollgate.actors.ledger.storage.connections.engine import Database, connect
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError, reason


async def copy_file(database: Database, file: Path) -> None:
    """Copies all tables into a new file, for its owner's eyes only, and checks what it wrote.

    Readers and writers go on meanwhile. Raises StorageError, StorageDown.
    """
    if not database.is_sqlite:
        raise StorageError("only an SQLite file can be copied: ship the journal to a folder")
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StorageError(f"{file}: cannot be made: {error.strerror}") from error
    # (reads the tables and writes elsewhere, but readers may not write at all)
    writing = await database.writing()
    is_whole = False
    try:
        await writing.fetch("VACUUM INTO ?", [str(file)])
        make_durable(file)
        make_durable(file.parent)
        await _check(file)
        is_whole = True
    except FAILURES as failure:
        raise StorageError(f"{file}: the copy was not made: {reason(failure)}") from failure
    finally:
        await writing.close()
        if not is_whole:
            file.unlink(missing_ok=True)


async def _check(file: Path) -> None:
    copy = await connect(f"sqlite:///{file}")
    try:
        async with copy.reading() as connection:
            if (found := await connection.fetch("PRAGMA quick_check")) != [("ok",)]:
                raise StorageError(f"{file}: the copy is broken: {found[0][0]}")
    finally:
        await copy.close()
