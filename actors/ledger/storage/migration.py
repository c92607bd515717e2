"""The tables' versions: upgrading to this one, and refusing to work on any other."""

from functools import cache
from pathlib import Path

from sqlalchemy import Connection, inspect

from tollgate.actors.ledger.storage.connections.engine import Database, connect
from tollgate.actors.ledger.storage.connections.location import is_sqlite, shown_url, storage_url
from tollgate.actors.ledger.storage.connections.time_bounds import REPORT_TIMEOUT_S
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError, reason

MIGRATIONS = Path(__file__).parent / "migrations"
# Any number will do, as long as nobody else's is the same: one upgrade at a time on a server.
UPGRADE_LOCK = 0x70_11_6A_7E


def newest_revision() -> str:
    """The version of the tables that this code works on."""
    return _newest_revision(MIGRATIONS)


@cache
def _newest_revision(folder: Path) -> str:
    """The last of the migrations in a folder: their files begin with their versions."""
    return max(file.stem.partition("_")[0] for file in folder.glob("versions/[0-9]*.py"))


async def upgrade(url: str) -> None:
    """Brings the tables at this url to this version, from any older one or from nothing.

    One transaction; what is there already stays as it is. An SQLite file is made when there is
    none, for its owner's eyes only, and so is the folder around it. Raises StorageError.
    """
    address = storage_url(url)
    if is_sqlite(address):
        _make_file(Path(str(address.database)))
    database = await connect(url, REPORT_TIMEOUT_S)
    try:
        await upgrade_tables(database)
    finally:
        await database.close()


async def upgrade_tables(database: Database) -> None:
    """`upgrade` on connections that are there."""
    try:
        async with database.writer.begin() as connection:
            if not database.is_sqlite:
                await connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({UPGRADE_LOCK})")
            if await connection.run_sync(_revision) != newest_revision():
                await connection.run_sync(_run_revisions)
    except _UnknownRevisionError as error:
        raise StorageError(
            f"{shown_url(database.url)}: the tables cannot be upgraded to {newest_revision()}: "
            f"{error}. Were they written by a newer Tollgate?"
        ) from error
    except FAILURES as error:
        raise StorageError(
            f"{shown_url(database.url)}: the tables cannot be upgraded: {reason(error)}"
        ) from error


def _make_file(file: Path) -> None:
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.touch(mode=0o600)
    except OSError as error:
        raise StorageError(f"{file}: cannot be made: {error.strerror}") from error


async def open_database(url: str, command_timeout_s: float | None = None) -> Database:
    """The storage at this url, once its tables are known to be of this version.

    `command_timeout_s`: see `connect`. Raises StorageError.
    """
    address = storage_url(url)
    if is_sqlite(address) and not Path(str(address.database)).is_file():
        raise StorageError(f"{address.database}: there is no such file: {_UPGRADE}")
    database = await connect(url, command_timeout_s)
    try:
        async with database.reader.connect() as connection:
            found = await connection.run_sync(_revision)
    except FAILURES as error:
        await database.close()
        raise StorageError(
            f"{shown_url(database.url)}: the tables cannot be read: {reason(error)}"
        ) from error
    if found != newest_revision():
        await database.close()
        what = "there are no tables" if found is None else f"the tables are of version {found}"
        raise StorageError(
            f"{shown_url(database.url)}: {what}, and this Tollgate works on version "
            f"{newest_revision()}: {_UPGRADE}"
        )
    return database


_UPGRADE = "`tollgate up` makes what is missing and upgrades what is old"


class _UnknownRevisionError(Exception):
    """No revision leads on from the tables that were found."""


def _revision(connection: Connection) -> str | None:
    """The version of the tables; None when there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return None if found is None else str(found)


def _run_revisions(connection: Connection) -> None:
    # Imported here, for it takes half a second, and most starts find the tables as they should be.
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise _UnknownRevisionError(reason(error)) from error
