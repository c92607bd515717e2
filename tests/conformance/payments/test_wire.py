"""Part A of payments, case by case: bodies and queries in."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tollgate.actors.ledger.storage.store import ListFilter, PageBounds
from tollgate.serve.payments.api.bodies.readers import (
    BODY_BYTES_MAX,
    FORM_FIELDS_MAX,
    Body,
    read_body,
    read_query,
)
from tollgate.serve.payments.api.paging import ListQuery, read_list_query
from tollgate.serve.payments.api.parameters import PAGE, filter_name, require_known
from tollgate.serve.payments.api.rejections import BadRequest

CASES = Path(__file__).parent
KNOWN = (*PAGE, *map(filter_name, ("merchantId", "transactionId", "test", "successful")))
Case = dict[str, Any]


def cases(name: str) -> list[Case]:
    found = yaml.safe_load((CASES / name).read_text())
    assert found
    return list(found)


@pytest.mark.parametrize("case", cases("bodies.yaml"), ids=lambda case: case["name"])
def test_bodies_are_read_or_refused_by_field(case: Case) -> None:
    raw = case["body"].encode()
    if "refused" in case:
        with pytest.raises(BadRequest) as refused:
            read_body(case["type"], raw)
        assert [error.field for error in refused.value.errors] == case["refused"]
    else:
        assert read_body(case["type"], raw) == Body(case["fields"], case.get("form", False))


def asked(query: bytes) -> ListQuery:
    fields = read_query(query)
    require_known(fields, KNOWN)
    return read_list_query(fields)


@pytest.mark.parametrize("case", cases("queries.yaml"), ids=lambda case: case["query"] or "empty")
def test_queries_are_read_or_refused_by_field(case: Case) -> None:
    query = case["query"].encode()
    if "refused" in case:
        with pytest.raises(BadRequest) as refused:
            asked(query)
        assert sorted(error.field for error in refused.value.errors) == case["refused"]
    else:
        page, wanted = case["page"], case.get("filter", {})
        expected = ListQuery(
            PageBounds(
                page["limit"],
                page.get("before"),
                page.get("after"),
                page.get("ascending", False),
            ),
            ListFilter(wanted.get("transaction"), wanted.get("test"), wanted.get("successful")),
            case.get("merchant"),
        )
        assert asked(query) == expected


def test_a_body_has_an_end() -> None:
    room = BODY_BYTES_MAX - len('{"a":""}')
    assert (
        len(str(read_body("application/json", b'{"a":"%b"}' % (b"x" * room)).fields["a"])) == room
    )
    with pytest.raises(BadRequest, match="larger than 1048576 bytes"):
        read_body("application/json", b'{"a":"%b"}' % (b"x" * (room + 1)))


def test_a_form_has_so_many_fields_and_levels() -> None:
    form = "application/x-www-form-urlencoded"
    fields = "&".join(f"f{number}=1" for number in range(FORM_FIELDS_MAX))
    assert len(read_body(form, fields.encode()).fields) == FORM_FIELDS_MAX
    with pytest.raises(BadRequest, match="more than 1000 fields"):
        read_body(form, f"{fields}&one=more".encode())
    assert read_body(form, f"a{'[b]' * 63}=1".encode()).is_form
    with pytest.raises(BadRequest, match="nested deeper than 64 levels"):
        read_body(form, f"a{'[b]' * 64}=1".encode())


def test_a_long_name_is_cut_short_in_the_refusal() -> None:
    name = "n" * 1_000
    with pytest.raises(BadRequest) as refused:
        read_body("application/x-www-form-urlencoded", f"{name}=1&{name}=2".encode())
    (error,) = refused.value.errors
    assert len(error.field) < 110
