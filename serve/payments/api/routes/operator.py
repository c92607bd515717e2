"""Calls of the operator, at a port of its own and with a key of its own (part G)."""

from tollgate.actors.ledger.law.commands import ApproveMerchant, PayOut
from tollgate.serve.payments.api.bodies.readers import read_query
from tollgate.serve.payments.api.bodies.requests import PayoutCreate
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.paging import read_list_query
from tollgate.serve.payments.api.rejections import BadRequest, FieldError, NotFound
from tollgate.serve.payments.api.replies import Reply, as_list, done_reply, encode_json
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


async def approve_merchant(context: ApiContext, call: Call) -> Reply:
    merchant = await context.entities.merchant(call.ids[0])
    return done_reply(await context.execute(call, merchant.id, ApproveMerchant()))


async def list_waiting_merchants(context: ApiContext, call: Call) -> Reply:
    page = read_list_query(read_query(call.query), frozenset()).page
    return Reply(200, as_list(await context.store.waiting_merchants(page)))


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
        "GET",
        "/operator/waiting-merchants",
        list_waiting_merchants,
        "operator",
        "Live merchants that wait for approval",
        reply="Merchant[]",
        is_paged=True,
        access=Access.OPERATOR,
    ),
    Route(
        "PUT",
        "/operator/merchants/{merchantId}/approval",
        approve_merchant,
        "operator",
        "Let a live merchant trade",
        status=204,
        statuses=frozenset({404}),
        description="Once, and for good; of a merchant that may trade already it changes nothing.",
        access=Access.OPERATOR,
    ),
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
