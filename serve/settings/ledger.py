"""The rows about the ledger: the storage of its books, and their writers."""

from dataclasses import dataclass
from pathlib import Path

from tollgate.serve.settings.rows import setting, without_credentials
from tollgate.serve.settings.values import BadValueError, duration, text, whole_number

# Below the data folder, when no storage is set.
DEFAULT_FILE = Path("payments") / "ledger.sqlite"
SQLITE_PREFIX = "sqlite:///"
SHARDS_MAX = 256
CACHE_BYTES_MIN, CACHE_BYTES_MAX = 2**20, 2**40
PREFIXES = (SQLITE_PREFIX, "postgresql://")


def storage(value: str) -> str:
    """A url of a storage that we know; what follows the prefix is read when it is opened."""
    prefix = next((prefix for prefix in PREFIXES if value.startswith(prefix)), None)
    if value and (prefix is None or value == prefix):
        raise BadValueError(
            "is neither sqlite:///FILE nor postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )
    return value


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """The books of the merchants (docs/payments.md, part F)."""

    storage: str = setting(
        "TOLLGATE_STORAGE_URL",
        storage,
        "",
        "url of the ledger's SQLite file or PostgreSQL database; empty: a file in TOLLGATE_DATA",
        show=without_credentials,
    )

    shards: int = setting(
        "LEDGER_SHARDS", whole_number(1, SHARDS_MAX), "1", "actors that share the ledger's books"
    )

    cache_bytes_max: int = setting(
        "LEDGER_CACHE_BYTES_MAX",
        whole_number(CACHE_BYTES_MIN, CACHE_BYTES_MAX),
        "134217728",
        "memory of each shard for books and transactions that were used last",
    )

    backup: str = setting(
        "LEDGER_BACKUP",
        text,
        "",
        "folder on another disk for segments of the journal, written as it grows; empty: none",
    )
    anchors: str = setting(
        "LEDGER_ANCHORS",
        text,
        "",
        "folder outside the data folder for signed anchors, one file a day; empty: none",
    )
    anchor_key_file: str = setting(
        "LEDGER_ANCHOR_KEY_FILE",
        text,
        "",
        "file outside the data folder with their key (`tollgate ledger make-anchor-key`)",
    )
    upkeep_interval_s: float = setting(
        "LEDGER_UPKEEP_INTERVAL",
        duration("1s", "24h"),
        "10m",
        "time between two backups; old operations are forgotten and days anchored then, too",
    )

    def storage_url(self, data: str) -> str:
        """The url that holds; `data` is the value of TOLLGATE_DATA."""
        return self.storage or f"{SQLITE_PREFIX}{(Path(data) / DEFAULT_FILE).absolute()}"
