"""The parts that handlers work with, and the way of every call to them:

401 unknown key -> 404 no such thing -> 403 not a member -> 429 too often -> the handler
"""

from dataclasses import dataclass
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.json import decode

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.book.decisions.approval import REJECTED, WAITS
from tollgate.actors.ledger.delivery.store import DeliveryStore
from tollgate.actors.ledger.law.commands import Command
from tollgate.actors.ledger.law.ids import result_of
from tollgate.actors.ledger.law.outcomes import Done, DoneKind, ErrorCode
from tollgate.actors.ledger.law.roles import Act
from tollgate.actors.ledger.law.rows import EntityRow
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import DIRECTORY, BookId, Currency, EntityId, Rate, RateTable
from tollgate.actors.ledger.storage.store import ListFilter, PageBounds, ReadStore
from tollgate.serve.net.guarded_client import PUBLIC_ALONE, TargetPolicy
from tollgate.serve.payments.api.access import Authentication
from tollgate.serve.payments.api.bodies.model_reader import RequestBody, read_model
from tollgate.serve.payments.api.bodies.readers import NO_BODY, Body
from tollgate.serve.payments.api.bodies.wire_types import Reading
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.entity_cache import CachedMerchant, CachedTransaction, EntityCache
from tollgate.serve.payments.api.limits.calls import CallLimits, per_app, per_merchant
from tollgate.serve.payments.api.limits.waiting_merchants import WaitingMerchants
from tollgate.serve.payments.api.orders import CommandGateway, attempt_failed
from tollgate.serve.payments.api.paging import list_reply, read_list_query
from tollgate.serve.payments.api.rejections import Forbidden, NotAnswered
from tollgate.serve.payments.api.replies import Reply, Stream, as_list, done_reply, under
from tollgate.serve.payments.api.router import Handler
from tollgate.serve.payments.checkout.parts import Checkout
from tollgate.serve.payments.mail.mailer import Invitation
from tollgate.serve.payments.network.card_network import CardNetworks
from tollgate.serve.payments.network.conclusions import Conclusions
from tollgate.serve.payments.reference.tables import ReferenceData
from tollgate.serve.payments.secrets.generator import SecretGenerator
from tollgate.serve.payments.secrets.key_uses import KeyUses
from tollgate.serve.payments.secrets.keys import KeyDigests
from tollgate.serve.payments.webhooks.caller import WebhookCaller
from tollgate.serve.payments.webhooks.calls import WebhookTargets
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer

ASK_AGAIN_AFTER_S = 5
NOT_ANSWERED = (
    "the card network has not answered, so nobody knows yet whether it was done: do not order it "
    "anew; the same Idempotency-Key tells once it is known, and so do the merchant's events"
)
BY_MERCHANT = frozenset({"merchantId"})
M = TypeVar("M", bound=RequestBody)


class _Claim(Struct):
    canChargeCard: bool  # noqa: N815 - the wire's name


class _Trading(Struct):
    claim: _Claim
    rejected: bool = False


_TRADES = _Trading(_Claim(canChargeCard=True))


class Invitations(Protocol):
    """Tells people that they were invited."""

    def send(self, invitation: Invitation) -> None:
        """Sees to it that an e-mail goes out; does not wait for that, and does not fail."""


@dataclass(frozen=True, slots=True)
class TradePolicy:
    """The operator's terms for live merchants. `approves_live`: they trade as soon as they are
    opened. `rates_age_max_ms`: how old the exchange rates may be by which they exchange."""

    approves_live: bool
    rates_age_max_ms: int


@dataclass(frozen=True, slots=True)
class TransactionAccess:
    """The book of a transaction. `state`: how it was a moment ago, if that is known."""

    transaction: CachedTransaction
    state: Transaction | None
    merchant: CachedMerchant


@dataclass(frozen=True, slots=True)
class ApiContext:
    """The parts of the API, put together."""

    store: ReadStore
    entities: EntityCache
    authentication: Authentication
    commands: CommandGateway
    limits: CallLimits
    reference: ReferenceData
    networks: CardNetworks
    checkout: Checkout
    conclusions: Conclusions
    secrets: SecretGenerator
    digests: KeyDigests
    key_uses: KeyUses
    invitations: Invitations
    deliveries: DeliveryStore
    secret_sealer: WebhookSecretSealer
    webhook_caller: WebhookCaller
    targets: WebhookTargets
    trade: TradePolicy
    waiting: WaitingMerchants
    clock: Clock

    @property
    def now_ms(self) -> int:
        return int(self.clock.now_s() * 1000)

    def read(self, body: Body, model: type[M], targets: TargetPolicy = PUBLIC_ALONE) -> M:
        """The fields of a body; webhooks may be at these `targets`. Raises BadRequest."""
        return read_model(model, body, Reading(self.reference, targets, body.is_form))

    async def access_merchant(
        self,
        call: Call,
        merchant: str,
        *,
        is_for_the_book: bool = False,
        act: Act | None = None,
    ) -> CachedMerchant:
        """Into a merchant's book. `is_for_the_book`: it will ask who is a member, not we. `act`:
        what the caller's role must allow; None: to read it, or with a write to manage it. Raises
        NotFound, Forbidden, TooMany."""
        facts = await self.entities.merchant(merchant)
        app, is_test, is_write = call.caller.app, facts.is_test, call.is_write
        require_mode(call, is_test=is_test)
        if not is_for_the_book:
            act = act or (Act.MANAGE if is_write else Act.READ)
            await self.authentication.require_member(facts.id, app, act)
        await self.limits.admit(
            per_app(app, is_test=is_test, is_write=is_write),
            per_merchant(facts.id, is_test=is_test, is_write=is_write),
        )
        return facts

    async def access_transaction(
        self, call: Call, transaction: str, act: Act | None = None
    ) -> TransactionAccess:
        """Into the book of a transaction; `act` as of a merchant. Raises NotFound, Forbidden,
        TooMany."""
        facts, state = await self.entities.transaction(transaction)
        merchant = await self.access_merchant(call, facts.merchant, act=act)
        return TransactionAccess(facts, state, merchant)

    async def access_entity(self, call: Call, kind: str, entity: str) -> EntityRow:
        """Into the book of an entity, which is read. Raises NotFound, Forbidden, TooMany."""
        row = await self.entities.row(kind, entity)
        await self.access_merchant(call, row.book)
        return row

    async def count_call(self, call: Call, *, is_test: bool = False) -> None:
        """Into no merchant's book. Raises TooMany."""
        app = call.caller.app
        await self.limits.admit(per_app(app, is_test=is_test, is_write=call.is_write))

    async def page_reply(
        self, kind: str, book: BookId, page: PageBounds, wanted: ListFilter
    ) -> Reply | Stream:
        """A page of a book's entities of a kind."""
        return await list_reply(lambda part: self.store.page(kind, book, part, wanted), page)

    async def execute(
        self,
        call: Call,
        book: BookId,
        command: Command,
        body: Body = NO_BODY,
        *,
        is_checked: bool = False,
        idempotency_key: str | None = None,
        is_test: bool | None = None,
    ) -> Done:
        """Give an order in the name of the caller (see CommandGateway.give). `is_test`: None where
        the book tells."""
        done = await self.commands.give(
            call,
            book,
            command,
            body,
            is_test=await self._is_test(book) if is_test is None else is_test,
            is_checked=is_checked,
            idempotency_key=idempotency_key,
        )
        return await self.outcome(done)

    async def outcome(self, done: Done) -> Done:
        """What became of an intent in the end, if that is what was done (I2). Raises
        NotAnswered."""
        if done.kind is not DoneKind.INTENDED:
            return done
        row = await self.store.operation_named(result_of(intent_in(done)))
        if row is None:
            raise NotAnswered(NOT_ANSWERED, ASK_AGAIN_AFTER_S)
        return Done(row.done, row.body, is_replay=done.is_replay)

    async def _is_test(self, book: BookId) -> bool:
        """The directory is not: who makes an app, or a new key for it, may have live merchants."""
        return book != DIRECTORY and (await self.entities.merchant(book)).is_test

    async def first_reply(self, call: Call, book: BookId, body: Body) -> Reply | None:
        """The reply to the same call, if it was made with its idempotency key before: for calls
        that are judged by tables which may have changed since. Without a key nothing is read."""
        done = await self.first_outcome(call, book, body, call.idempotency_key)
        return None if done is None else done_reply(done)

    async def first_outcome(self, call: Call, book: BookId, body: Body, key: str) -> Done | None:
        """The outcome of the same call, if it was made with this idempotency key before."""
        if not key:
            return None
        row = await self.store.operation((call.caller.app, book, key))
        if row is None or row.fingerprint != call.fingerprint(body):
            return None
        return await self.outcome(Done(row.done, row.body, is_replay=True))

    async def require_approval(self, merchant: CachedMerchant) -> None:
        """Checks that the merchant may take payments, before a card network hears of one. Raises
        AttemptFailed."""
        found = await self._trading(merchant)
        if not found.claim.canChargeCard:
            why = REJECTED if found.rejected else WAITS
            raise attempt_failed(self.reference.errors, int(ErrorCode.MAY_NOT_PAY), why)

    async def is_approved(self, merchant: CachedMerchant) -> bool:
        """True if the merchant does not wait for the operator; test merchants never do."""
        return merchant.is_test or (await self._trading(merchant)).claim.canChargeCard

    async def _trading(self, merchant: CachedMerchant) -> _Trading:
        if merchant.is_test:
            return _TRADES
        row = await self.entities.row("merchant", merchant.id)
        return decode(row.document, type=_Trading)

    def rate_table(self) -> RateTable:
        """The table that `exchange_rate` looks into now."""
        return self.reference.rates.table(self.now_ms, self.trade.rates_age_max_ms)

    def exchange_rate(self, source: Currency, target: Currency) -> Rate | None:
        """The exchange rate of now; None when none is needed, or none is known."""
        if source == target:
            return None
        return self.reference.rates.rate(source, target, self.now_ms)


def require_mode(call: Call, *, is_test: bool) -> None:
    """Checks that the caller's key is for merchants of this kind (T11). Raises Forbidden."""
    if not call.caller.may_touch(is_test=is_test):
        mine, theirs = ("live", "test") if is_test else ("test", "live")
        raise Forbidden(f"this is a {mine} key, and the merchant is a {theirs} one")


def intent_in(done: Done) -> EntityId:
    """The intent that was opened."""
    return EntityId(decode(done.body, type=dict[str, dict[str, str]])["intent"]["id"])


def entity_of(kind: str) -> Handler[ApiContext]:
    """Answers with the entity of this kind that the path names."""

    async def answer(context: ApiContext, call: Call) -> Reply:
        row = await context.access_entity(call, kind, call.ids[0])
        return Reply(200, under(kind, row.document))

    return answer


def list_of(kind: str) -> Handler[ApiContext]:
    """Answers with a page of the entities of this kind of the merchant that the path names.
    Its route has the filter BY_MERCHANT, or more."""

    async def answer(context: ApiContext, call: Call) -> Reply | Stream:
        merchant = await context.access_merchant(call, call.ids[0])
        query = read_list_query(call.query_fields)
        if query.merchant is not None and query.merchant != EntityId(merchant.id):
            return Reply(200, as_list(()))
        return await context.page_reply(kind, merchant.id, query.page, query.wanted)

    return answer
