"""What the card network reports: disputes and frauds (part A)."""

from tollgate.serve.payments.api.bodies.constraints import FieldError
from tollgate.serve.payments.api.bodies.fields import REQUIRED
from tollgate.serve.payments.api.bodies.readers import read_query
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.paging import read_list_query
from tollgate.serve.payments.api.rejections import BadRequest
from tollgate.serve.payments.api.replies import Reply
from tollgate.serve.payments.api.router import Route

FILTERS = frozenset({"merchantId", "transactionId", "test"})
MEMBERS_ONLY = frozenset({403, 404})


async def disputes(context: ApiContext, call: Call) -> Reply:
    return await _page(context, call, "dispute")


async def dispute(context: ApiContext, call: Call) -> Reply:
    return await context.one(call, "dispute", call.ids[0])


async def frauds(context: ApiContext, call: Call) -> Reply:
    return await _page(context, call, "fraud")


async def fraud(context: ApiContext, call: Call) -> Reply:
    return await context.one(call, "fraud", call.ids[0])


async def _page(context: ApiContext, call: Call, kind: str) -> Reply:
    """The merchant is named in the query here, so that must be good before anything else."""
    query = read_list_query(read_query(call.query), FILTERS)
    if query.merchant is None:
        raise BadRequest(FieldError("filter.merchantId", REQUIRED))
    merchant = await context.enter(call, query.merchant)
    return await context.page(kind, merchant.id, query.page, query.wanted)


ROUTES = (
    Route(
        "GET",
        "/disputes",
        disputes,
        "disputes",
        "Disputes of a merchant",
        reply="Dispute[]",
        is_paged=True,
        filters=FILTERS,
        statuses=MEMBERS_ONLY,
        description="`filter[merchantId]` is required.",
    ),
    Route(
        "GET",
        "/disputes/{disputeId}",
        dispute,
        "disputes",
        "Fetch a dispute",
        reply="DisputeReply",
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "GET",
        "/frauds",
        frauds,
        "frauds",
        "Fraud reports of a merchant",
        reply="Fraud[]",
        is_paged=True,
        filters=FILTERS,
        statuses=MEMBERS_ONLY,
        description="`filter[merchantId]` is required.",
    ),
    Route(
        "GET",
        "/frauds/{fraudId}",
        fraud,
        "frauds",
        "Fetch a fraud report",
        reply="FraudReply",
        statuses=MEMBERS_ONLY,
    ),
)
