"""Queries of lists: the page that is asked for, and its filters (part A, Lists).

    limit              required, 1 to 1000
    before             older than this id, newest first
    after              newer than this id, oldest first; with `before` as well, newest first
    sort               `id` or `-id`, over what the bounds say
    filter[name]       `merchantId`, `transactionId`, `test`, `successful`, as far as there are such

Bounds are compared by value: clients make them from dates, and no entity need have them. An empty
value is as good as none, and so is `null` for an id.

A page is read PIECE entities at a time. One that becomes long is sent while it is read: a thousand
transactions with all the data that they may have are fifty megabytes.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from msgspec.json import decode

from tollgate.actors.ledger.law.ids import is_id
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.storage.store import ListFilter, PageBounds
from tollgate.serve.payments.api.bodies.constraints import flag
from tollgate.serve.payments.api.rejections import BadRequest, FieldError
from tollgate.serve.payments.api.replies import JSON, LIST_BEGIN, LIST_END, Reply, Stream, as_list

LIMIT_MAX = 1_000
# Entities that are read at a time, and the characters of a list that is sent as a whole.
PIECE = 100
WHOLE_LENGTH_MAX = 1024 * 1024
Fetch = Callable[[PageBounds], Awaitable[list[str]]]
# Of an id: some clients write an absent one as the text of their null.
ABSENT = ("", "null")
_LIMIT = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class ListQuery:
    """`merchant`: of `filter[merchantId]`, None when absent."""

    page: PageBounds
    wanted: ListFilter
    merchant: EntityId | None = None


def read_list_query(query: Mapping[str, object]) -> ListQuery:
    """The page that a query of known parameters asks for. Raises BadRequest."""
    errors: list[FieldError] = []
    page = _page(query, errors)
    given = _filters(query, errors)
    wanted = ListFilter(
        transaction=_id(given.get("transactionId"), "filter.transactionId", errors),
        is_test=_flag(given, "test", errors),
        is_successful=_flag(given, "successful", errors),
    )
    merchant = _id(given.get("merchantId"), "filter.merchantId", errors)
    if errors:
        raise BadRequest(*errors)
    return ListQuery(page, wanted, merchant)


async def list_reply(fetch: Fetch, page: PageBounds) -> Reply | Stream:
    """The reply with the documents of a page; `fetch` reads those of a part of it."""
    documents: list[str] = []
    left: PageBounds | None = page
    while left is not None and sum(map(len, documents)) <= WHOLE_LENGTH_MAX:
        documents, left = await _read_on(fetch, left, documents)
    if left is None:
        return Reply(200, as_list(documents))
    return Stream(_pieces(fetch, left, documents), JSON)


async def _pieces(
    fetch: Fetch, left: PageBounds | None, documents: list[str]
) -> AsyncIterator[bytes]:
    yield LIST_BEGIN + ",\n".join(documents).encode()
    while left is not None:
        documents, left = await _read_on(fetch, left, [])
        for document in documents:
            yield b",\n" + document.encode()
    yield LIST_END


async def _read_on(
    fetch: Fetch, left: PageBounds, before: list[str]
) -> tuple[list[str], PageBounds | None]:
    """The documents so far, with those of the next piece; and what is left after it."""
    wanted = min(left.limit, PIECE)
    found = await fetch(replace(left, limit=wanted))
    documents = [*before, *found]
    if len(found) < wanted or left.limit == wanted:
        return documents, None
    last = EntityId(str(decode(found[-1], type=dict[str, object])["id"]))
    after, before_id = (last, left.before) if left.is_ascending else (left.after, last)
    limit = left.limit - wanted
    return documents, replace(left, limit=limit, after=after, before=before_id)


def _page(query: Mapping[str, object], errors: list[FieldError]) -> PageBounds:
    before = _id(query.get("before"), "before", errors)
    after = _id(query.get("after"), "after", errors)
    sort = query.get("sort") or ""
    if sort not in ("", "id", "-id"):
        errors.append(FieldError("sort", "must be id or -id"))
    is_ascending = sort == "id" if sort else after is not None and before is None
    return PageBounds(_limit(query, errors), before, after, is_ascending)


def _limit(query: Mapping[str, object], errors: list[FieldError]) -> int:
    text = query.get("limit")
    if text is None or text == "":
        errors.append(FieldError("limit", f"is required: 1 to {LIMIT_MAX}"))
        return 0
    number = int(text) if isinstance(text, str) and _LIMIT.fullmatch(text) else 0
    if not 1 <= number <= LIMIT_MAX:
        errors.append(FieldError("limit", f"must be a whole number from 1 to {LIMIT_MAX}"))
    return number


def _filters(query: Mapping[str, object], errors: list[FieldError]) -> dict[str, str]:
    """The filters that are not empty."""
    given = query.get("filter", {})
    if given == "":
        return {}
    if not isinstance(given, dict):
        errors.append(FieldError("filter", "must be given as filter[name]=value"))
        return {}
    found: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(value, str):
            errors.append(FieldError(f"filter.{name}", "must be one value"))
        elif value:
            found[name] = value
    return found


def _id(value: object, field: str, errors: list[FieldError]) -> EntityId | None:
    if value is None or value in ABSENT:
        return None
    if not isinstance(value, str) or not is_id(value):
        errors.append(FieldError(field, "must be an id: 24 digits of 0-9 and a-f"))
        return None
    return EntityId(value)


def _flag(given: Mapping[str, str], name: str, errors: list[FieldError]) -> bool | None:
    value = given.get(name)
    if value is None:
        return None
    found = flag(value, f"filter.{name}", is_form=True)
    if isinstance(found, FieldError):
        errors.append(found)
        return None
    return found
