"""Which part of a list a query asks for, and what it is told when it asks for none."""

import asyncio

import pytest

from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.storage.store import ListFilter, PageBounds
from tollgate.serve.payments.api.bodies.readers import read_query
from tollgate.serve.payments.api.paging import (
    LIMIT_MAX,
    PIECE,
    WHOLE_LENGTH_MAX,
    ListQuery,
    list_reply,
    read_list_query,
)
from tollgate.serve.payments.api.parameters import PAGE, filter_name, require_known
from tollgate.serve.payments.api.rejections import BadRequest
from tollgate.serve.payments.api.replies import Reply, as_list

OLD, NEW = EntityId("0" * 23 + "1"), EntityId("0" * 23 + "2")
ALL = frozenset({"transactionId", "test", "successful", "merchantId"})


def asked(query: str, filters: frozenset[str] = ALL) -> ListQuery:
    fields = read_query(query.encode())
    require_known(fields, (*PAGE, *map(filter_name, sorted(filters))))
    return read_list_query(fields)


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("limit=1", PageBounds(1)),
        (f"limit={LIMIT_MAX}", PageBounds(LIMIT_MAX)),
        ("limit=0010", PageBounds(10)),
        (f"limit=5&before={NEW}", PageBounds(5, before=NEW)),
        (f"limit=5&after={OLD}", PageBounds(5, after=OLD, is_ascending=True)),
        (f"limit=5&before={NEW}&after={OLD}", PageBounds(5, NEW, OLD)),
        (f"limit=5&before={NEW}&sort=id", PageBounds(5, before=NEW, is_ascending=True)),
        (f"limit=5&after={OLD}&sort=-id", PageBounds(5, after=OLD)),
        ("limit=5&before=&after=&sort=", PageBounds(5)),
        (f"limit=5&after={OLD}&before=null", PageBounds(5, after=OLD, is_ascending=True)),
        (f"limit=5&before={OLD}&after=null", PageBounds(5, before=OLD)),
    ],
)
def test_bounds_and_order(query: str, page: PageBounds) -> None:
    assert asked(query).page == page


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("limit=5", ListFilter()),
        (f"limit=5&filter[transactionId]={OLD}", ListFilter(transaction=OLD)),
        ("limit=5&filter[test]=true&filter[successful]=false", ListFilter(None, True, False)),
        ("limit=5&filter[test]=", ListFilter()),
        ("limit=5&filter[transactionId]=null", ListFilter()),
        ("limit=5&filter=", ListFilter()),
    ],
)
def test_filters_are_read_from_the_query(query: str, wanted: ListFilter) -> None:
    assert asked(query).wanted == wanted


def test_a_merchant_is_told_apart_from_the_filters_of_the_store() -> None:
    query = asked(f"limit=5&filter[merchantId]={OLD}")
    assert query.merchant == OLD
    assert query.wanted == ListFilter()


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("", ["limit"]),
        ("limit=", ["limit"]),
        ("limit=0", ["limit"]),
        (f"limit={LIMIT_MAX + 1}", ["limit"]),
        ("limit=-1", ["limit"]),
        ("limit=1e3", ["limit"]),
        ("limit=%D9%A1", ["limit"]),  # a digit of another script
        ("limit=9999999999", ["limit"]),
        ("limit[]=5", ["limit"]),
        ("limit=5&before=x", ["before"]),
        (f"limit=5&after={OLD.upper()}0", ["after"]),
        ("limit=5&sort=name", ["sort"]),
        ("limit=5&filter=x", ["filter"]),
        ("limit=5&filter[test]=maybe", ["filter.test"]),
        ("limit=5&filter[test][]=true", ["filter.test"]),
        ("limit=5&filter[colour]=red", ["filter.colour"]),
        ("limit=5&filter[merchantId]=x", ["filter.merchantId"]),
        ("before=x&after=y&sort=z", ["before", "after", "sort", "limit"]),
        (f"limit=1&befor={OLD}", ["befor"]),
        ("limit=1&Sort=id&filters[test]=yes", ["Sort", "filters"]),
    ],
)
def test_every_field_that_is_wrong_is_named(query: str, fields: list[str]) -> None:
    with pytest.raises(BadRequest) as refused:
        asked(query)
    assert [error.field for error in refused.value.errors] == fields


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (f"befor={OLD}", "is unknown; did you mean before?"),
        ("filter[tets]=yes", "is unknown; did you mean filter[test]?"),
        ("filters[test]=yes", "is unknown; did you mean filter[test]?"),
        ("test=yes", "is unknown; did you mean filter[test]?"),
        ("page=2", "is unknown: this call has limit, sort, before, after, filter[test]"),
        ("filter[x]=1", "is unknown: this call has limit, sort, before, after, filter[test]"),
    ],
)
def test_an_unknown_parameter_is_told_the_right_one(query: str, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        asked(f"limit=1&{query}", frozenset({"test"}))
    assert [error.message for error in refused.value.errors] == [message]


class Book:
    """So many entities, each with a long text; `asked`: the limits that were asked for."""

    def __init__(self, count: int, length: int) -> None:
        self.documents = [f'{{"id":"{n:024x}","pad":"{"x" * length}"}}' for n in range(count)]
        self.asked: list[int] = []

    async def fetch(self, page: PageBounds) -> list[str]:
        self.asked.append(page.limit)
        found = [
            document
            for n, document in enumerate(self.documents)
            if (page.after is None or f"{n:024x}" > page.after)
            and (page.before is None or f"{n:024x}" < page.before)
        ]
        return (found if page.is_ascending else found[::-1])[: page.limit]

    async def reply(self, page: PageBounds) -> tuple[bool, list[bytes]]:
        """Whether the reply is whole, and its pieces."""
        reply = await list_reply(self.fetch, page)
        if isinstance(reply, Reply):
            return True, [reply.body]
        return False, [piece async for piece in reply.chunks]


@pytest.mark.parametrize("length", [0, 2 * WHOLE_LENGTH_MAX // (3 * PIECE)])
@pytest.mark.parametrize("count", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 1])
@pytest.mark.parametrize(
    "page",
    [
        PageBounds(LIMIT_MAX),
        PageBounds(3 * PIECE, is_ascending=True),
        PageBounds(PIECE),
        PageBounds(2 * PIECE, before=EntityId(f"{2 * PIECE + 5:024x}"), after=OLD),
        PageBounds(2 * PIECE, after=NEW, is_ascending=True),
    ],
)
def test_a_list_is_the_same_however_it_is_read(page: PageBounds, count: int, length: int) -> None:
    book = Book(count, length)
    expected = as_list(asyncio.run(book.fetch(page)))
    book.asked.clear()
    is_whole, pieces = asyncio.run(book.reply(page))
    assert b"".join(pieces) == expected
    assert max(book.asked) <= PIECE
    assert is_whole == (length == 0 or len(book.asked) <= 2)
