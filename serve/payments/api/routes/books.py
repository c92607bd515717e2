"""A merchant's books: lines and their export, balance, events, audit (parts A and D)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

from msgspec.json import decode

from tollgate.actors.ledger.book.documents import moment
from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import BookId, Currency, EntityId
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import BY_MERCHANT, ApiContext, list_of
from tollgate.serve.payments.api.entity_cache import CachedMerchant
from tollgate.serve.payments.api.line_export import CSV_HEADER, csv_row, ndjson_row
from tollgate.serve.payments.api.paging import ListQuery, read_list_query
from tollgate.serve.payments.api.rejections import BadRequest, FieldError
from tollgate.serve.payments.api.replies import Reply, Stream, as_list, encode_json
from tollgate.serve.payments.api.router import Route

LINE_FILTERS = frozenset({"merchantId", "transactionId", "test"})
MEMBERS_ONLY = frozenset({403, 404})
SEQ_DIGITS_MAX = 15
AT_LENGTH_MAX = 40
LINES_PER_PIECE = 500
CSV = b"text/csv; charset=utf-8; header=present"
NDJSON = b"application/x-ndjson"
EXPORT = """All of them, the oldest first; `before` and `after` bound them. `amount` is in
`currency`; `balance` and `fee` are in `fundingCurrency`."""


async def find_line(context: ApiContext, call: Call) -> Reply:
    row = await context.access_entity(call, "line", call.ids[0])
    return Reply(200, row.document.encode())


async def export_lines_as_csv(context: ApiContext, call: Call) -> Stream:
    merchant, documents = await _exported(context, call)
    return Stream(_csv(documents, merchant.currency), CSV, _attachment("lines.csv"))


async def export_lines_as_ndjson(context: ApiContext, call: Call) -> Stream:
    merchant, documents = await _exported(context, call)
    return Stream(_ndjson(documents, merchant.currency), NDJSON, _attachment("lines.ndjson"))


async def find_balance(context: ApiContext, call: Call) -> Reply:
    merchant = await context.access_merchant(call, call.ids[0])
    at_ms = _moment_ms(call.query_fields.get("at"))
    amount = await context.store.balance_at(merchant.id, at_ms)
    assert amount is not None, "the merchant is there, and so is its book"
    shown = moment(context.now_ms if at_ms is None else at_ms)
    document = {"currency": merchant.currency, "amount": amount, "at": shown}
    return Reply(200, encode_json({"balance": document}))


async def list_audit(context: ApiContext, call: Call) -> Reply:
    """Entries of the journal, the oldest first, by their numbers."""
    merchant = await context.access_merchant(call, call.ids[0])
    query = dict(call.query_fields)
    after_seq = _seq(query.pop("after", ""))
    limit = read_list_query(query).page.limit
    documents: list[str] = []
    async for entry in context.store.entries(merchant.id, after_seq):
        documents.append(encode_json(_audit_document(entry)).decode())
        if len(documents) == limit:
            break
    return Reply(200, as_list(documents))


def _audit_document(entry: Entry) -> dict[str, object]:
    origin = decode(entry.origin, type=dict[str, str])
    return {
        "seq": entry.seq,
        "created": moment(entry.at_ms),
        "type": entry.kind,
        "appId": origin["app"] or None,
        "keyLast4": origin["key_last4"] or None,
        "address": origin["address"] or None,
        "requestId": origin["request_id"] or None,
        "idempotencyKey": origin["idempotency_key"] or None,
        "hash": entry.hash,
    }


async def _exported(context: ApiContext, call: Call) -> tuple[CachedMerchant, AsyncIterator[str]]:
    """Lines of a merchant, the oldest first, page by page while they are sent."""
    merchant = await context.access_merchant(call, call.ids[0])
    query = dict(call.query_fields)
    query["limit"], query["sort"] = str(LINES_PER_PIECE), "id"
    return merchant, _all_lines(context, merchant.id, read_list_query(query))


async def _all_lines(context: ApiContext, book: BookId, query: ListQuery) -> AsyncIterator[str]:
    page = query.page
    if query.merchant is not None and query.merchant != EntityId(book):
        return
    while documents := await context.store.page("line", book, page, query.wanted):
        for document in documents:
            yield document
        last = decode(documents[-1], type=dict[str, object])["id"]
        page = replace(page, after=EntityId(str(last)))


async def _csv(documents: AsyncIterator[str], funding: Currency) -> AsyncIterator[bytes]:
    yield CSV_HEADER
    async for document in documents:
        yield csv_row(document, funding)


async def _ndjson(documents: AsyncIterator[str], funding: Currency) -> AsyncIterator[bytes]:
    async for document in documents:
        yield ndjson_row(document, funding)


def _attachment(name: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"content-disposition", f'attachment; filename="{name}"'.encode()),)


def _seq(text: object) -> int:
    if text == "":
        return 0
    if not isinstance(text, str) or not text.isdecimal() or len(text) > SEQ_DIGITS_MAX:
        raise BadRequest(FieldError("after", "must be the seq of an entry"))
    return int(text)


def _moment_ms(text: object) -> int | None:
    """A time of the wire, or a day: what was, at its end or until then."""
    if text is None or text == "":
        return None
    problem = FieldError("at", "must be a time such as 2026-02-28T09:30:00.000Z")
    if not isinstance(text, str) or len(text) > AT_LENGTH_MAX:
        raise BadRequest(problem)
    try:
        at = datetime.fromisoformat(text)
        # A time of another zone may have no year in ours.
        at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise BadRequest(problem) from None
    return int(at.timestamp() * 1000)


ROUTES = (
    Route(
        "GET",
        "/merchants/{merchantId}/lines",
        list_of("line"),
        "lines",
        "Lines of a merchant",
        reply="Line[]",
        is_paged=True,
        filters=LINE_FILTERS,
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "GET",
        "/lines/{lineId}",
        find_line,
        "lines",
        "Fetch a line",
        reply="Line",
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "GET",
        "/merchants/{merchantId}/lines.csv",
        export_lines_as_csv,
        "lines",
        "Export lines as CSV",
        media_type="text/csv",
        filters=LINE_FILTERS,
        statuses=MEMBERS_ONLY,
        description=EXPORT,
    ),
    Route(
        "GET",
        "/merchants/{merchantId}/lines.ndjson",
        export_lines_as_ndjson,
        "lines",
        "Export lines as NDJSON",
        media_type="application/x-ndjson",
        filters=LINE_FILTERS,
        statuses=MEMBERS_ONLY,
        description=EXPORT,
    ),
    Route(
        "GET",
        "/merchants/{merchantId}/balance",
        find_balance,
        "books",
        "The balance, now or at a time",
        reply="BalanceReply",
        statuses=MEMBERS_ONLY,
        query=(("at", "a time, such as 2026-02-28T09:30:00.000Z"),),
    ),
    Route(
        "GET",
        "/merchants/{merchantId}/events",
        list_of("event"),
        "events",
        "Events of a merchant",
        reply="Event[]",
        is_paged=True,
        filters=BY_MERCHANT,
        statuses=MEMBERS_ONLY,
        description="One per committed change. Poll with `after`.",
    ),
    Route(
        "GET",
        "/merchants/{merchantId}/audit",
        list_audit,
        "books",
        "Who changed what, from where",
        reply="AuditEntry[]",
        statuses=MEMBERS_ONLY,
        query=(
            ("limit", "1 to 1000"),
            ("after", "the seq of the last entry received"),
        ),
        required=frozenset({"limit"}),
        description="The oldest first. Each hash covers the entry and the hash before it.",
    ),
)
