"""Calls of the operator, at a port of its own and with a key of its own (part G)."""

from collections.abc import Sequence

from msgspec.json import decode

from tollgate.actors.ledger.book.chain import event_of
from tollgate.actors.ledger.book.decisions.approval import approval_version, merchant_version
from tollgate.actors.ledger.book.evolution import merchant_after
from tollgate.actors.ledger.book.head import Merchant
from tollgate.actors.ledger.law.commands import (
    ApproveMerchant,
    PayOut,
    PriceMerchant,
    RejectMerchant,
)
from tollgate.actors.ledger.law.values import BookId
from tollgate.serve.payments.api.bodies.requests import (
    CHANGEABLE,
    MerchantApprove,
    MerchantChange,
    MerchantPrice,
    PayoutCreate,
)
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.paging import read_list_query
from tollgate.serve.payments.api.rejections import BadRequest, FieldError, LostRace, NotFound
from tollgate.serve.payments.api.replies import Reply, as_list, done_reply, encode_json
from tollgate.serve.payments.api.router import Access, Route
from tollgate.serve.payments.api.routes.merchants import merchant_change

# Beyond so many entries of a book it is not looked for what has changed in it.
ENTRIES_READ_MAX = 10_000


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
    """What the operator has read, and nothing else: `version` names it."""
    merchant = await context.entities.merchant(call.ids[0])
    body = await call.body()
    version = context.read(body, MerchantApprove).version
    try:
        done = await context.execute(call, merchant.id, ApproveMerchant(version), body)
    except LostRace:
        changes = await _changes_since(context, merchant.id, version)
        raise LostRace(f"nothing was approved: {changes}; look at the merchant again") from None
    return done_reply(done)


async def reject_merchant(context: ApiContext, call: Call) -> Reply:
    merchant = await context.entities.merchant(call.ids[0])
    return done_reply(await context.execute(call, merchant.id, RejectMerchant()))


async def _changes_since(context: ApiContext, book: BookId, version: str) -> str:
    """What has changed of a merchant since this version of it, in words."""
    seen: Merchant | None = None
    now: Merchant | None = None
    async for entry in context.store.entries(book):
        if entry.seq > ENTRIES_READ_MAX:
            break
        if entry.kind not in ("merchant.opened", "merchant.changed"):
            continue
        now = merchant_after(now, event_of(entry), entry.at_ms)
        if now is not None and merchant_version(book, now) == version:
            seen = now
    if seen is None or now is None:
        return "it is no version of this merchant"
    changes = [
        f'the {field} was "{getattr(seen, field)}" and is now "{getattr(now, field)}"'
        for field in CHANGEABLE
        if getattr(seen, field) != getattr(now, field)
    ]
    return ", ".join(changes) or "the merchant has been changed since"


async def change_merchant(context: ApiContext, call: Call) -> Reply:
    """One that was approved, too (A3)."""
    merchant = await context.entities.merchant(call.ids[0])
    body = await call.body()
    command = merchant_change(context.read(body, MerchantChange))
    return done_reply(await context.execute(call, merchant.id, command, body))


async def price_merchant(context: ApiContext, call: Call) -> Reply:
    """From the next capture on."""
    merchant = await context.entities.merchant(call.ids[0])
    body = await call.body()
    wanted = context.read(body, MerchantPrice)
    command = PriceMerchant(wanted.ratePpm, wanted.flat, wanted.dispute)
    return done_reply(await context.execute(call, merchant.id, command, body))


async def list_waiting_merchants(context: ApiContext, call: Call) -> Reply:
    page = read_list_query(call.query_fields).page
    waiting = await context.store.waiting_merchants(page)
    return Reply(200, as_list([_versioned(each) for each in waiting]))


def _versioned(document: str) -> str:
    """A merchant's document with the version that an approval names."""
    version = approval_version(decode(document))
    return f'{document.removesuffix("}")},"version":"{version}"}}'


async def find_trial_balance(context: ApiContext, call: Call) -> Reply:
    """M8."""
    del call
    sums, strays = await context.store.trial_balance(), await context.store.stray_balance()
    totals: dict[str, int] = {}
    for _, currency, amount in sums:
        totals[currency] = totals.get(currency, 0) + amount
    document = {
        "accounts": _accounts(sums),
        "balanced": not any(totals.values()) and not strays,
        "strays": _accounts(strays),
    }
    return Reply(200, encode_json({"trialBalance": document}))


def _accounts(sums: Sequence[tuple[str, str, int]]) -> list[dict[str, object]]:
    return [
        {"account": account, "currency": currency, "amount": amount}
        for account, currency, amount in sums
    ]


ROUTES = (
    Route(
        "GET",
        "/operator/waiting-merchants",
        list_waiting_merchants,
        "operator",
        "Live merchants that wait for approval",
        reply="WaitingMerchant[]",
        is_paged=True,
        access=Access.OPERATOR,
    ),
    Route(
        "PUT",
        "/operator/merchants/{merchantId}",
        change_merchant,
        "operator",
        "Change a merchant's name, email or descriptor",
        request="MerchantChange",
        status=204,
        statuses=frozenset({404}),
        description="Of a merchant that was approved, too.",
        access=Access.OPERATOR,
    ),
    Route(
        "PUT",
        "/operator/merchants/{merchantId}/approval",
        approve_merchant,
        "operator",
        "Let a live merchant trade",
        request="MerchantApprove",
        status=204,
        statuses=frozenset({404, 409}),
        description="Once, and for good. `version` is that of the list: when the merchant has been "
        "changed since, nothing is approved, and the answer is 409.",
        access=Access.OPERATOR,
    ),
    Route(
        "PUT",
        "/operator/merchants/{merchantId}/rejection",
        reject_merchant,
        "operator",
        "Reject a live merchant that waits",
        status=204,
        statuses=frozenset({404}),
        description="It leaves the list, and does not trade. Approved after all, it does.",
        access=Access.OPERATOR,
    ),
    Route(
        "PUT",
        "/operator/merchants/{merchantId}/pricing",
        price_merchant,
        "operator",
        "Set a merchant's fees",
        request="MerchantPrice",
        status=204,
        statuses=frozenset({404}),
        description="In the funding currency, from the next capture on.",
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
