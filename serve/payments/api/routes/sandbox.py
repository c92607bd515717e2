"""Test merchants' own world: disputes, frauds, payouts, as they come (part H).

Nothing here works for a live merchant. Payments are in checkout/form_payments.py.
"""

from tollgate.actors.ledger.law.commands import (
    DecideDispute,
    OpenDispute,
    PayOut,
    ReportFraud,
)
from tollgate.actors.ledger.law.values import EntityId
from tollgate.serve.payments.api.bodies.requests import (
    PayoutCreate,
    SandboxDispute,
    SandboxFraud,
)
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.entity_cache import CachedMerchant
from tollgate.serve.payments.api.rejections import Forbidden
from tollgate.serve.payments.api.replies import Reply, done_reply
from tollgate.serve.payments.api.router import Route

DISPUTE_DAYS = 14
DAY_MS = 86_400_000
CHANGES = frozenset({403, 404, 409})


async def create_sandbox_dispute(context: ApiContext, call: Call) -> Reply:
    body = await call.body()
    wanted = context.read(body, SandboxDispute)
    merchant = await _of_transaction(context, call, wanted.transactionId)
    command = OpenDispute(
        transaction=wanted.transactionId,
        amount=wanted.amount,
        reason_code=wanted.reason.code,
        reason_title=wanted.reason.title or "Disputed in the sandbox",
        due_ms=context.now_ms + DISPUTE_DAYS * DAY_MS,
        dispute_rate=context.exchange_rate(merchant.pricing.dispute.currency, merchant.currency),
    )
    return done_reply(await context.execute(call, merchant.id, command, body))


async def win_sandbox_dispute(context: ApiContext, call: Call) -> Reply:
    return await _decide(context, call, is_won=True)


async def lose_sandbox_dispute(context: ApiContext, call: Call) -> Reply:
    return await _decide(context, call, is_won=False)


async def _decide(context: ApiContext, call: Call, *, is_won: bool) -> Reply:
    row = await context.access_entity(call, "dispute", call.ids[0])
    merchant = await context.entities.merchant(row.book)
    _require_test(merchant)
    return done_reply(await context.execute(call, row.book, DecideDispute(row.id, is_won)))


async def create_sandbox_fraud(context: ApiContext, call: Call) -> Reply:
    body = await call.body()
    wanted = context.read(body, SandboxFraud)
    merchant = await _of_transaction(context, call, wanted.transactionId)
    command = ReportFraud(wanted.transactionId, context.now_ms, wanted.reason)
    return done_reply(await context.execute(call, merchant.id, command, body))


async def create_sandbox_payout(context: ApiContext, call: Call) -> Reply:
    body = await call.body()
    wanted = context.read(body, PayoutCreate)
    merchant = await context.access_merchant(call, wanted.merchantId)
    _require_test(merchant)
    command = PayOut(wanted.amount, wanted.description)
    return done_reply(await context.execute(call, merchant.id, command, body))


async def _of_transaction(context: ApiContext, call: Call, transaction: EntityId) -> CachedMerchant:
    entered = await context.access_transaction(call, transaction)
    _require_test(entered.merchant)
    return entered.merchant


def _require_test(merchant: CachedMerchant) -> None:
    if not merchant.is_test:
        raise Forbidden("the sandbox is for test merchants")


ROUTES = (
    Route(
        "POST",
        "/sandbox/disputes",
        create_sandbox_dispute,
        "sandbox",
        "Open a dispute",
        request="SandboxDispute",
        reply="DisputeReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/sandbox/disputes/{disputeId}/won",
        win_sandbox_dispute,
        "sandbox",
        "Win a dispute",
        reply="DisputeReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/sandbox/disputes/{disputeId}/lost",
        lose_sandbox_dispute,
        "sandbox",
        "Lose a dispute",
        reply="DisputeReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/sandbox/frauds",
        create_sandbox_fraud,
        "sandbox",
        "Report a fraud",
        request="SandboxFraud",
        reply="FraudReply",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/sandbox/payouts",
        create_sandbox_payout,
        "sandbox",
        "Pay out of the balance",
        request="PayoutCreate",
        reply="LineReply",
        status=201,
        statuses=CHANGES,
    ),
)
