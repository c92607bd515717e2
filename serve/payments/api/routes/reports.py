"""Reports of the card network: disputes and frauds (part A)."""

from tollgate.serve.payments.api.bodies.model_reader import REQUIRED
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext, entity_of
from tollgate.serve.payments.api.paging import read_list_query
from tollgate.serve.payments.api.rejections import BadRequest, FieldError
from tollgate.serve.payments.api.replies import Reply, Stream
from tollgate.serve.payments.api.router import Route

FILTERS = frozenset({"merchantId", "transactionId", "test"})
MEMBERS_ONLY = frozenset({403, 404})
REQUIRED_FILTERS = frozenset({"filter[merchantId]"})


async def list_disputes(context: ApiContext, call: Call) -> Reply | Stream:
    return await _page(context, call, "dispute")


async def list_frauds(context: ApiContext, call: Call) -> Reply | Stream:
    return await _page(context, call, "fraud")


async def _page(context: ApiContext, call: Call, kind: str) -> Reply | Stream:
    """The merchant is named in the query here, so that must be good before anything else."""
    query = read_list_query(call.query_fields)
    if query.merchant is None:
        raise BadRequest(FieldError("filter.merchantId", REQUIRED))
    merchant = await context.access_merchant(call, query.merchant)
    return await context.page_reply(kind, merchant.id, query.page, query.wanted)


ROUTES = (
    Route(
        "GET",
        "/disputes",
        list_disputes,
        "disputes",
        "Disputes of a merchant",
        reply="Dispute[]",
        is_paged=True,
        filters=FILTERS,
        required=REQUIRED_FILTERS,
        statuses=MEMBERS_ONLY,
        description="`filter[merchantId]` is required.",
    ),
    Route(
        "GET",
        "/disputes/{disputeId}",
        entity_of("dispute"),
        "disputes",
        "Fetch a dispute",
        reply="DisputeReply",
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "GET",
        "/frauds",
        list_frauds,
        "frauds",
        "Fraud reports of a merchant",
        reply="Fraud[]",
        is_paged=True,
        filters=FILTERS,
        required=REQUIRED_FILTERS,
        statuses=MEMBERS_ONLY,
        description="`filter[merchantId]` is required.",
    ),
    Route(
        "GET",
        "/frauds/{fraudId}",
        entity_of("fraud"),
        "frauds",
        "Fetch a fraud report",
        reply="FraudReply",
        statuses=MEMBERS_ONLY,
    ),
)
