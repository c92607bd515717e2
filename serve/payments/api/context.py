"""What handlers work with, and the way every call takes to them:

401 unknown key -> 404 no such thing -> 403 not a member -> 429 too often -> the handler
"""

from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.delivery.schedule import DeliveryStore
from tollgate.actors.ledger.law.commands import Command
from tollgate.actors.ledger.law.outcomes import Done
from tollgate.actors.ledger.law.rows import EntityRow
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import BookId, Currency, EntityId, Rate
from tollgate.actors.ledger.storage.store import ListFilter, PageBounds, ReadStore
from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.payments.api.access import Authentication
from tollgate.serve.payments.api.bodies.readers import NO_BODY, Body, read_query
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.call_limits import Limits, per_app, per_merchant
from tollgate.serve.payments.api.immutable_facts import Facts, MerchantFacts, TransactionFacts
from tollgate.serve.payments.api.orders import Ordering
from tollgate.serve.payments.api.paging import read_list_query
from tollgate.serve.payments.api.replies import Reply, as_list, under
from tollgate.serve.payments.mail.mailer import Invitation
from tollgate.serve.payments.network.port import CardNetworks
from tollgate.serve.payments.reference.tables import ReferenceData
from tollgate.serve.payments.secrets.key_uses import KeyUses
from tollgate.serve.payments.secrets.keys import KeyDigests
from tollgate.serve.payments.secrets.minting import Minting
from tollgate.serve.payments.webhooks.secrets import SecretBox

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

    async def page(self, kind: str, book: BookId, page: PageBounds, wanted: ListFilter) -> Reply:
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
