"""What only the operator may do, at a port of its own and with a key of its own (part G)."""

from tollgate.actors.ledger.law.commands import PayOut
from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.bodies.constraints import FieldError
from tollgate.serve.payments.api.bodies.fields import BodyFields
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.orders import done_reply
from tollgate.serve.payments.api.rejections import BadRequest, NotFound
from tollgate.serve.payments.api.replies import Reply, encode_json
from tollgate.serve.payments.api.router import Access, Route


async def pay_out(context: ApiContext, call: Call) -> Reply:
    body = await call.body()
    fields = BodyFields(body)
    wanted = fields.reference("merchantId")
    amount = fields.amount()
    description = fields.may("description", constraints.text, "")
    fields.check()
    try:
        merchant = await context.entities.merchant(wanted)
    except NotFound:
        raise BadRequest(FieldError("merchantId", f"there is no merchant {wanted}")) from None
    return done_reply(await context.order(call, merchant.id, PayOut(amount, description), body))


async def trial_balance(context: ApiContext, call: Call) -> Reply:
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
        pay_out,
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
        trial_balance,
        "operator",
        "The sums of all accounts, which cancel out per currency",
        reply="TrialBalanceReply",
        statuses=frozenset({404}),
        access=Access.OPERATOR,
    ),
)
