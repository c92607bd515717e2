"""A process that writes a book, entry by entry, and says after each that it is durable.

    python -m tests.support.ledger.writer URL [FILE_BYTES_MAX]

Prints `seq` after each commit. When files may not grow beyond FILE_BYTES_MAX, some commit fails:
what becomes of that one is printed, and of one that is tried after it.
"""

import asyncio
import resource
import sys

from tests.support.ledger.storage import Book, move
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.migration import open_database
from tollgate.actors.ledger.storage.store import Fenced, OutcomeUnknown
from tollgate.actors.ledger.storage.writer import SqlJournalStore


async def write(url: str) -> None:
    database = await open_database(url)
    store = SqlJournalStore(database)
    await store.take_over("shard", "a process")
    book = Book()
    try:
        while True:
            await store.append(book.commit(*move(1), entities=(book.entity("line"),)))
            sys.stdout.write(f"{book.seq}\n")
            sys.stdout.flush()
    except (Fenced, OutcomeUnknown) as end:
        sys.stdout.write(f"{type(end).__name__}: {end}\n")
    try:
        await store.append(Book().commit())
    except (Fenced, OutcomeUnknown) as end:
        sys.stdout.write(f"then {type(end).__name__}\n")
    await store.close()
    await database.close()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        limit = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        asyncio.run(write(sys.argv[1]))
    except StorageError as error:
        sys.exit(str(error))
