"""How many live merchants may wait for the operator's approval (part D, Own limits).

Anybody may open one, and each is something for the operator to look at: so an app, an address and
everybody together have only so many that wait. Those that have waited for a month count no more,
lest a flood of them shut the door for ever.
"""

import asyncio
from collections import Counter
from typing import Final, final

from msgspec import Struct
from msgspec.json import decode

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.storage.store import ReadStore
from tollgate.serve.net.public_addresses import network_of
from tollgate.serve.payments.api.rejections import TooMany, Unavailable

WAITING_PER_APP_MAX = 20
WAITING_PER_ADDRESS_MAX = 100
WAITING_MAX = 1_000
COUNTED_FOR_S = 30 * 86_400
RETRY_AFTER_S = 3_600
# They are counted over all merchants there are, so no stranger has them counted more often. What
# this process lets in meanwhile is added; other processes' is not known until then.
REMEMBERED_S = 10.0
EVERYBODY: Final = "everybody"


class _Origin(Struct):
    app: str
    address: str


@final
class WaitingMerchants:
    """Counts them, and stops those beyond a limit."""

    def __init__(self, store: ReadStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._counting = asyncio.Lock()
        self._until_s: float | None = None
        self._found: Counter[str] = Counter()

    async def admit(self, app: EntityId, address: str) -> None:
        """Counts one more of an app, from an address. Raises TooMany, Unavailable, StorageDown."""
        network = network_of(address)
        async with self._counting:
            if self._until_s is None or self._clock.monotonic_s() >= self._until_s:
                self._found = await self._count()
                self._until_s = self._clock.monotonic_s() + REMEMBERED_S
            for name, most, whose in (
                (app, WAITING_PER_APP_MAX, "your app"),
                (network, WAITING_PER_ADDRESS_MAX, "your address"),
            ):
                if self._found[name] >= most:
                    why = f"{most} live merchants of {whose} wait for approval, and no more may"
                    raise TooMany(f"{why}: ask the operator to look at them", RETRY_AFTER_S)
            if self._found[EVERYBODY] >= WAITING_MAX:
                why = "as many live merchants as may wait for the operator's approval"
                raise Unavailable(f"{why} ({WAITING_MAX}) wait already", RETRY_AFTER_S)
            self._found.update((app, network, EVERYBODY))

    async def _count(self) -> Counter[str]:
        since = EntityId(f"{int(self._clock.now_s()) - COUNTED_FOR_S:08x}{'0' * 16}")
        found: Counter[str] = Counter()
        for each in await self._store.waiting_origins(since, WAITING_MAX):
            origin = decode(each, type=_Origin)
            found.update((origin.app, network_of(origin.address), EVERYBODY))
        return found
