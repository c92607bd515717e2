"""What the card network reports: disputes and frauds (part A)."""

from tollgate.serve.payments.api.bodies.constraints import FieldError
from tollgate.serve.payments.api.bodies.fields import REQUIRED
from tollgate.serve.payments.api.bodies.readers import read_query
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import Desk
from tollgate.serve.payments.api.paging import read_list_query
from tollgate.serve.payments.api.rejections import BadRequest
from tollgate.serve.payments.api.replies import Reply
from tollgate.serve.payments.api.router import About, Route

FILTERS = frozenset({"merchantId", "transactionId", "test"})
MEMBERS_ONLY = frozenset({403, 404})


async def disputes(desk: Desk, call: Call) -> Reply:
    return await _page(desk, call, "dispute")


async def dispute(desk: Desk, call: Call) -> Reply:
    return await desk.one(call, "dispute", call.ids[0])


async def frauds(desk: Desk, call: Call) -> Reply:
    return await _page(desk, call, "fraud")


async def fraud(desk: Desk, call: Call) -> Reply:
    return await desk.one(call, "fraud", call.ids[0])


async def _page(desk: Desk, call: Call, kind: str) -> Reply:
    """The merchant is named in the query here, so that must be good before anything else."""
    query = read_list_query(read_query(call.query), FILTERS)
    if query.merchant is None:
        raise BadRequest(FieldError("filter.merchantId", REQUIRED))
    merchant = await desk.enter(call, query.merchant)
    return await desk.page(kind, merchant.id, query.page, query.wanted)


ROUTES = (
    Route(
        "GET",
        "/disputes",
        disputes,
        About(
            "disputes",
            "Disputes of a merchant",
            reply="Dispute[]",
            is_paged=True,
            filters=FILTERS,
            statuses=MEMBERS_ONLY,
            description="`filter[merchantId]` is required.",
        ),
    ),
    Route(
        "GET",
        "/disputes/{disputeId}",
        dispute,
        About("disputes", "Fetch a dispute", reply="DisputeReply", statuses=MEMBERS_ONLY),
    ),
    Route(
        "GET",
        "/frauds",
        frauds,
        About(
            "frauds",
            "Fraud reports of a merchant",
            reply="Fraud[]",
            is_paged=True,
            filters=FILTERS,
            statuses=MEMBERS_ONLY,
            description="`filter[merchantId]` is required.",
        ),
    ),
    Route(
        "GET",
        "/frauds/{fraudId}",
        fraud,
        About("frauds", "Fetch a fraud report", reply="FraudReply", statuses=MEMBERS_ONLY),
    ),
)
