"""What only the operator may do, at a port of its own and with a key of its own (part G)."""

from actors.ledger.commands import PayOut
from serve.payments import constraints
from serve.payments.body_fields import BodyFields
from serve.payments.call import Call
from serve.payments.constraints import FieldError
from serve.payments.desk import Desk
from serve.payments.ordering import reply_of
from serve.payments.rejections import BadRequest, NotFound
from serve.payments.routing import About, Access, Route
from serve.payments.wire_out import Reply, encode_json


async def pay_out(desk: Desk, call: Call) -> Reply:
    body = await call.body()
    fields = BodyFields(body)
    wanted = fields.reference("merchantId")
    amount = fields.amount()
    description = fields.may("description", constraints.text, "")
    fields.check()
    try:
        merchant = await desk.facts.merchant(wanted)
    except NotFound:
        raise BadRequest(FieldError("merchantId", f"there is no merchant {wanted}")) from None
    return reply_of(await desk.order(call, merchant.id, PayOut(amount, description), body))


async def trial_balance(desk: Desk, call: Call) -> Reply:
    """M8."""
    del call
    sums = await desk.store.trial_balance()
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
        About(
            "operator",
            "Pay out of a merchant's balance",
            request="PayoutCreate",
            reply="LineReply",
            status=201,
            statuses=frozenset({404}),
        ),
        Access.OPERATOR,
    ),
    Route(
        "GET",
        "/operator/trial-balance",
        trial_balance,
        About(
            "operator",
            "The sums of all accounts, which cancel out per currency",
            reply="TrialBalanceReply",
            statuses=frozenset({404}),
        ),
        Access.OPERATOR,
    ),
)
