"""A cache of the properties of merchants and transactions that never change (part B; T3).

A capture needs to know whose transaction it is, in which currency, and what the merchant is funded
in and pays: all of that is fixed for ever, so it is read once. What does change (amounts, names,
memberships) is never here.
"""

from msgspec import UNSET, Struct
from msgspec.json import Decoder

from tollgate.actors.kernel.bounded_cache import LruCache
from tollgate.actors.ledger.book.entities import entity_of_row
from tollgate.actors.ledger.law.ids import is_id
from tollgate.actors.ledger.law.rows import EntityRow
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import BookId, Currency, EntityId
from tollgate.actors.ledger.storage.store import ReadStore
from tollgate.serve.payments.api.rejections import NotFound

MERCHANTS_MAX = 10_000
TRANSACTIONS_MAX = 100_000


class CachedPrice(Struct, frozen=True):
    currency: Currency


class CachedPricing(Struct, frozen=True):
    flat: CachedPrice
    dispute: CachedPrice


class CachedMerchant(Struct, frozen=True, rename={"is_test": "test"}):
    """Of a merchant's document."""

    id: BookId
    currency: Currency
    is_test: bool
    pricing: CachedPricing


class CachedTransaction(Struct, frozen=True):
    """Of a transaction. `network`: the one that authorised it; empty where nobody outside did."""

    merchant: BookId
    currency: Currency
    network: str = ""


_decode_merchant = Decoder(CachedMerchant).decode


class EntityCache:
    """Reads facts from the store, once."""

    def __init__(self, store: ReadStore) -> None:
        self._store = store
        self._merchants: LruCache[str, CachedMerchant] = LruCache(MERCHANTS_MAX)
        self._transactions: LruCache[str, CachedTransaction] = LruCache(TRANSACTIONS_MAX)

    async def merchant(self, merchant: str) -> CachedMerchant:
        """Raises NotFound."""
        if (known := self._merchants.get(merchant)) is not None:
            return known
        row = await self.row("merchant", merchant)
        facts = _decode_merchant(row.document)
        self._merchants.put(merchant, facts)
        return facts

    async def merchant_by_public_key(self, key: str) -> CachedMerchant | None:
        row = await self._store.merchant_by_public_key(key)
        return None if row is None else _decode_merchant(row.document)

    async def transaction(self, transaction: str) -> tuple[CachedTransaction, Transaction | None]:
        """And its state, if it had to be read anyway. Raises NotFound."""
        if (known := self._transactions.get(transaction)) is not None:
            return known, None
        row = await self.row("transaction", transaction)
        state = entity_of_row(row)
        assert isinstance(state, Transaction), "a transaction's row holds a transaction"
        network = "" if state.network is UNSET else state.network.name
        facts = CachedTransaction(state.book, state.currency, network)
        self._transactions.put(transaction, facts)
        return facts, state

    def learn(self, transaction: str, facts: CachedTransaction) -> None:
        """Of a transaction that was made here."""
        self._transactions.put(transaction, facts)

    async def row(self, kind: str, entity: str) -> EntityRow:
        """The row of an entity as it is stored now. Raises NotFound; for a malformed id, too."""
        row = await self._store.entity(kind, EntityId(entity)) if is_id(entity) else None
        if row is None:
            raise NotFound(f"there is no {kind} {entity[:24]}")
        return row
