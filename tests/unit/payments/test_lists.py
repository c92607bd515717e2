"""Which part of a list a query asks for, and what it is told when it asks for none."""

import pytest

from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.storage.store import ListFilter, PageBounds
from tollgate.serve.payments.api.bodies.readers import read_query
from tollgate.serve.payments.api.paging import LIMIT_MAX, ListQuery, read_list_query
from tollgate.serve.payments.api.rejections import BadRequest

OLD, NEW = EntityId("0" * 23 + "1"), EntityId("0" * 23 + "2")
ALL = frozenset({"transactionId", "test", "successful", "merchantId"})


def asked(query: str, filters: frozenset[str] = ALL) -> ListQuery:
    return read_list_query(read_query(query.encode()), filters)


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


def test_a_misspelt_parameter_is_told_the_right_one() -> None:
    with pytest.raises(BadRequest) as refused:
        asked(f"limit=1&befor={OLD}")
    assert refused.value.errors[0].message == "is unknown; did you mean before?"


def test_parameters_of_a_client_s_own_pass() -> None:
    """Such as those that keep caches away, and what other services page by."""
    assert asked("limit=1&_=1767225600&page=2&offset=10&order=asc&fields=id").page == PageBounds(1)


@pytest.mark.parametrize(
    ("known", "told"),
    [(frozenset(), "it has none"), (frozenset({"test", "successful"}), "successful, test")],
)
def test_a_filter_that_a_list_lacks_is_told_those_it_has(known: frozenset[str], told: str) -> None:
    with pytest.raises(BadRequest) as refused:
        asked("limit=5&filter[merchantId]=x", known)
    assert told in refused.value.errors[0].message
