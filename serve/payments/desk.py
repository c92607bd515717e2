"""What handlers work with, and the way every call takes to them:

401 unknown key -> 404 no such thing -> 403 not a member -> 429 too often -> the handler
"""

from dataclasses import dataclass
from typing import Protocol

from actors.kernel.clock import Clock
from actors.ledger.answers import Done
from actors.ledger.commands import Command
from actors.ledger.deliveries import DeliveryStore
from actors.ledger.rows import EntityRow
from actors.ledger.store import Filter, Page, ReadStore
from actors.ledger.transaction import Transaction
from actors.ledger.values import BookId, Currency, EntityId, Rate
from serve.payments.auth import Authentication
from serve.payments.call import Call
from serve.payments.card_network import CardNetworks
from serve.payments.facts import Facts, MerchantFacts, TransactionFacts
from serve.payments.key_uses import KeyUses
from serve.payments.keys import KeyDigests
from serve.payments.mail import Invitation
from serve.payments.minting import Minting
from serve.payments.ordering import Ordering
from serve.payments.own_limits import Limits, per_app, per_merchant
from serve.payments.paging import read_list_query
from serve.payments.reference import ReferenceData
from serve.payments.webhook_secrets import SecretBox
from serve.payments.webhooks import TargetPolicy
from serve.payments.wire_in import NO_BODY, Body, read_query
from serve.payments.wire_out import Reply, as_list, under

MERCHANT_ID = "merchantId"


class Invitations(Protocol):
    """Tells people that they were invited."""

    def send(self, invitation: Invitation) -> None:
        """Sees to it that an e-mail goes out; does not wait for that, and does not fail."""


@dataclass(frozen=True, slots=True)
class Entered:
    """The book of a transaction. `state`: how it was a moment ago, if that is known."""

    transaction: TransactionFacts
    state: Transaction | None
    merchant: MerchantFacts


@dataclass(frozen=True, slots=True)
class Desk:
    """The parts of the API, put together."""

    store: ReadStore
    facts: Facts
    authentication: Authentication
    ordering: Ordering
    limits: Limits
    reference: ReferenceData
    networks: CardNetworks
    mint: Minting
    digests: KeyDigests
    key_uses: KeyUses
    invitations: Invitations
    deliveries: DeliveryStore
    secret_box: SecretBox
    targets: TargetPolicy
    clock: Clock

    @property
    def now_ms(self) -> int:
        return int(self.clock.now_s() * 1000)

    async def enter(
        self, call: Call, merchant: str, *, is_for_the_book: bool = False
    ) -> MerchantFacts:
        """Into a merchant's book. `is_for_the_book`: it will ask who is a member, not we. Raises
        NotFound, Forbidden, TooMany."""
        facts = await self.facts.merchant(merchant)
        app, is_test, is_write = call.caller.app, facts.is_test, call.is_write
        if not is_for_the_book:
            await self.authentication.require_member(facts.id, app)
        await self.limits.admit(
            per_app(app, is_test=is_test, is_write=is_write),
            per_merchant(facts.id, is_test=is_test, is_write=is_write),
        )
        return facts

    async def enter_by_transaction(self, call: Call, transaction: str) -> Entered:
        """Into the book of a transaction. Raises NotFound, Forbidden, TooMany."""
        facts, state = await self.facts.transaction(transaction)
        return Entered(facts, state, await self.enter(call, facts.merchant))

    async def enter_by(self, call: Call, kind: str, entity: str) -> EntityRow:
        """Into the book of an entity, which is read. Raises NotFound, Forbidden, TooMany."""
        row = await self.facts.row(kind, entity)
        await self.enter(call, row.book)
        return row

    async def enter_alone(self, call: Call, *, is_test: bool = False) -> None:
        """Into no merchant's book. Raises TooMany."""
        app = call.caller.app
        await self.limits.admit(per_app(app, is_test=is_test, is_write=call.is_write))

    async def one(self, call: Call, kind: str, entity: str) -> Reply:
        """An entity under the name of its kind, as it is now."""
        row = await self.enter_by(call, kind, entity)
        return Reply(200, under(kind, row.document))

    async def listed(
        self, call: Call, kind: str, merchant: str, filters: frozenset[str] = frozenset()
    ) -> Reply:
        """A page of a merchant's entities of a kind. Raises BadRequest as well."""
        facts = await self.enter(call, merchant)
        query = read_list_query(read_query(call.query), filters | {MERCHANT_ID})
        if query.merchant is not None and query.merchant != EntityId(facts.id):
            return Reply(200, as_list(()))
        return await self.page(kind, facts.id, query.page, query.wanted)

    async def page(self, kind: str, book: BookId, page: Page, wanted: Filter) -> Reply:
        return Reply(200, as_list(await self.store.page(kind, book, page, wanted)))

    async def order(
        self,
        call: Call,
        book: BookId,
        command: Command,
        body: Body = NO_BODY,
        *,
        is_checked: bool = False,
        idempotency_key: str | None = None,
    ) -> Done:
        """Give an order in the name of the caller (see Ordering.give)."""
        return await self.ordering.give(
            call, book, command, body, is_checked=is_checked, idempotency_key=idempotency_key
        )

    def rate(self, source: Currency, target: Currency) -> Rate | None:
        """The exchange rate of now; None when none is needed, or none is known."""
        if source == target:
            return None
        return self.reference.rates.rate(source, target, self.now_ms)
