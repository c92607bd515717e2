"""The location of the storage: the url that an operator sets, read once and in one way."""

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tollgate.actors.ledger.storage.errors import StorageError

SQLITE = "sqlite+aiosqlite"
POSTGRESQL = "postgresql+asyncpg"
DRIVERS = {"sqlite": SQLITE, "postgresql": POSTGRESQL, SQLITE: SQLITE, POSTGRESQL: POSTGRESQL}
FORMS = "write sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"


def storage_url(text: str) -> URL:
    """The address with the driver that we use; raises StorageError."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # (the text is not repeated: it may hold a password)
        raise StorageError(f"the storage url cannot be read: {FORMS}") from None
    driver = DRIVERS.get(url.drivername)
    if driver is None:
        raise StorageError(f"{url.drivername}: is no storage that we know: {FORMS}")
    if driver == SQLITE and url.database in (None, "", ":memory:"):
        raise StorageError(f"the storage url names no file: {FORMS}")
    return url.set(drivername=driver)


def is_sqlite(url: URL) -> bool:
    return url.drivername == SQLITE


def shown_url(url: URL) -> str:
    """As it may be printed: without the password, and as it would be set."""
    return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)


def check_cluster(text: str, nodes: int) -> None:
    """One file has one writer: on more nodes than one, SQLite is refused (part F)."""
    url = storage_url(text)
    if is_sqlite(url) and nodes > 1:
        raise StorageError(
            f"the cluster has {nodes} nodes, but the ledger's storage is an SQLite file "
            f"({url.database}), which only one of them could write: set TOLLGATE_STORAGE_URL to "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )
