"""The parts of a shard actor, and its name.

A shard has two names. Its epoch is kept under that of the map, which every release shares: so a
newer one fences an older one. Its actor, which outlives whoever started it, bears the release and
the settings too: so an older one is never found and used by who asks for a newer.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.kernel.hashing import digest
from tollgate.actors.ledger.shard.pipeline import ShardBounds
from tollgate.actors.ledger.shard.routing import NAME_PREFIX, ShardMap
from tollgate.actors.ledger.storage.store import JournalStore

ACTORS = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class ShardSpec:
    """`number`: of the shards of the map. `open_store` runs on the actor's loop, and must be
    something that can be pickled. `release`: of the code and the settings, see `release_of`."""

    shards: ShardMap
    number: int
    open_store: Callable[[], Awaitable[JournalStore]]
    clock: Clock
    bounds: ShardBounds
    release: str

    @property
    def name(self) -> str:
        """As the owner of its epoch."""
        return self.shards.name(self.number)

    @property
    def actor_name(self) -> str:
        return f"{self.name}-{self.release}"


def is_shard(actor_name: str) -> bool:
    """True if an actor is a ledger shard of any release."""
    return actor_name.startswith(NAME_PREFIX)


def release_of(*settings: str) -> str:
    """A short name for the code of the actors and for these settings: 12 hex digits."""
    state = []
    for file in sorted(ACTORS.rglob("*.py")):
        state += [str(file.relative_to(ACTORS)).encode(), file.read_bytes()]
    return digest(*state, *(setting.encode() for setting in settings))[:12]
