"""Files of the card network, by the operator (the commands `tollgate payments disputes import` and
their like; part D, Files of the network)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tollgate.serve.payments.api.bodies.requests import NetworkFile
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.paging import read_list_query
from tollgate.serve.payments.api.replies import Reply, Stream, encode_json
from tollgate.serve.payments.api.router import Access, Route
from tollgate.serve.payments.network_files.disputes import DisputeMatcher
from tollgate.serve.payments.network_files.frauds import FraudMatcher
from tollgate.serve.payments.network_files.matching import MatchedBooks
from tollgate.serve.payments.network_files.outcomes import Effect, FileReport, Finding
from tollgate.serve.payments.network_files.records import (
    DisputeRecord,
    FraudRecord,
    NumberedRecord,
    SettlementRecord,
    read_records,
)
from tollgate.serve.payments.network_files.settlements import SettlementMatcher

# A file of the largest, as JSON writes it, with its line ends and quotes escaped.
FILE_BODY_BYTES_MAX = 6 * 1024 * 1024
R = TypeVar("R", DisputeRecord, FraudRecord, SettlementRecord)
DESCRIPTION = (
    "The text of a file, CSV or lines of JSON. A line that is wrong refuses it as a whole; a "
    "record that does not match is told, and the others are booked. The same file again changes "
    "nothing. With `dryRun` nothing is booked, and the report is the same."
)


async def import_disputes(context: ApiContext, call: Call) -> Reply:
    wanted = context.read(await call.body(), NetworkFile)
    records = read_records(DisputeRecord, wanted.file, context.reference)
    books, report = _opened(context, call, wanted)
    return await _reply(report, records, DisputeMatcher(books, wanted.network).match)


async def import_frauds(context: ApiContext, call: Call) -> Reply:
    wanted = context.read(await call.body(), NetworkFile)
    records = read_records(FraudRecord, wanted.file, context.reference)
    books, report = _opened(context, call, wanted)
    return await _reply(report, records, FraudMatcher(books, wanted.network).match)


async def import_settlements(context: ApiContext, call: Call) -> Reply:
    wanted = context.read(await call.body(), NetworkFile)
    records = read_records(SettlementRecord, wanted.file, context.reference)
    books, report = _opened(context, call, wanted)
    return await _reply(report, records, SettlementMatcher(books, wanted.network, report).match)


def _opened(
    context: ApiContext, call: Call, wanted: NetworkFile
) -> tuple[MatchedBooks, FileReport]:
    return MatchedBooks(context, call, is_dry=wanted.dryRun), FileReport(wanted.dryRun)


async def _reply(
    report: FileReport,
    records: Sequence[NumberedRecord[R]],
    match: Callable[[R], Awaitable[Effect | Finding]],
) -> Reply:
    """In the order of the file: a dispute is opened before it is decided."""
    for each in records:
        report.note(each.line, each.content.reference, await match(each.content))
    return Reply(201, encode_json({"report": report.document()}))


async def list_settlements(context: ApiContext, call: Call) -> Reply | Stream:
    merchant = await context.entities.merchant(call.ids[0])
    query = read_list_query(call.query_fields)
    return await context.page_reply("settlement", merchant.id, query.page, query.wanted)


def _file_route(
    kind: str, answer: Callable[[ApiContext, Call], Awaitable[Reply]]
) -> Route[ApiContext]:
    return Route(
        "POST",
        f"/operator/{kind}",
        answer,
        "operator",
        f"Import a file of {kind} of the card network",
        request="NetworkFile",
        reply="FileReportReply",
        status=201,
        takes_key=False,
        description=DESCRIPTION,
        access=Access.OPERATOR,
        body_bytes_max=FILE_BODY_BYTES_MAX,
    )


ROUTES = (
    _file_route("disputes", import_disputes),
    _file_route("frauds", import_frauds),
    _file_route("settlements", import_settlements),
    Route(
        "GET",
        "/operator/merchants/{merchantId}/settlements",
        list_settlements,
        "operator",
        "Settlements of a merchant, with what the books expect",
        reply="Settlement[]",
        is_paged=True,
        statuses=frozenset({404}),
        access=Access.OPERATOR,
    ),
)
