"""Calls of the operator, at a port of its own and with a key of its own (part G)."""

from tollgate.actors.ledger.law.commands import PayOut
from tollgate.serve.payments.api.bodies.requests import PayoutCreate
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.rejections import BadRequest, FieldError, NotFound
from tollgate.serve.payments.api.replies import Reply, done_reply, encode_json
from tollgate.serve.payments.api.router import Access, Route


async def create_payout(context: ApiContext, call: Call) -> Reply:
    body = await call.body()
    wanted = context.read(body, PayoutCreate)
    try:
        merchant = await context.entities.merchant(wanted.merchantId)
    except NotFound:
        why = f"there is no merchant {wanted.merchantId}"
        raise BadRequest(FieldError("merchantId", why)) from None
    command = PayOut(wanted.amount, wanted.description)
    return done_reply(await context.execute(call, merchant.id, command, body))


async def find_trial_balance(context: ApiContext, call: Call) -> Reply:
    """M8."""
    del call
    sums = await context.store.trial_balance()
    totals: dict[str, int] = {}
    for _, currency, amount in sums:
        totals[currency] = totals.get(currency, 0) + amount
    document = {
        "accounts": [
            {"account": account, "currency": currency, "amount": amount}
            for account, currency, amount in sums
        ],
        "balanced": not any(totals.values()),
    }
    return Reply(200, encode_json({"trialBalance": document}))


ROUTES = (
    Route(
        "POST",
        "/operator/payouts",
        create_payout,
        "operator",
        "Pay out of a merchant's balance",
        request="PayoutCreate",
        reply="LineReply",
        status=201,
        statuses=frozenset({404}),
        access=Access.OPERATOR,
    ),
    Route(
        "GET",
        "/operator/trial-balance",
        find_trial_balance,
        "operator",
        "The sums of all accounts, which cancel out per currency",
        reply="TrialBalanceReply",
        statuses=frozenset({404}),
        access=Access.OPERATOR,
    ),
)
