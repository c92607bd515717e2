"""Bodies and queries as they come over the wire, and what is refused of them."""

import json

import pytest

from tollgate.serve.payments.api.bodies.readers import (
    BODY_BYTES_MAX,
    FORM,
    FORM_FIELDS_MAX,
    FORM_STEPS_MAX,
    NAME_SHOWN_MAX,
    NO_BODY,
    QUERY_FIELDS_MAX,
    Body,
    read_body,
    read_query,
)
from tollgate.serve.payments.api.bodies.strict_json import JSON_DEPTH_MAX
from tollgate.serve.payments.api.rejections import BadRequest


@pytest.mark.parametrize("content_type", ["", "application/json", FORM, "image/png"])
def test_nothing_is_no_fields_whatever_it_is_called(content_type: str) -> None:
    assert read_body(content_type, b"") is NO_BODY


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "Application/JSON; charset=utf-8", "application/vnd.shop+json"],
)
def test_json_is_told_by_its_media_type(content_type: str) -> None:
    assert read_body(content_type, b'{"a": 1}') == Body({"a": 1})


def test_an_empty_array_is_an_empty_object() -> None:
    assert read_body("application/json", b"[ ]") == Body({})


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        (b"a=1", {"a": "1"}),
        (b"a", {"a": ""}),
        (b"a=1&&b=2&", {"a": "1", "b": "2"}),
        (b"a=x+y%20z%2B", {"a": "x y z+"}),
        (b"a=b=c", {"a": "b=c"}),
        (
            b"company[country]=DK&company[name]=Caf%C3%A9",
            {"company": {"country": "DK", "name": "Café"}},
        ),
        (b"list[]=1&list[]=2", {"list": ["1", "2"]}),
        (b"a[b][c]=1&a[b][d]=2&a[e]=3", {"a": {"b": {"c": "1", "d": "2"}, "e": "3"}}),
    ],
)
def test_a_form_nests_by_its_brackets(form: bytes, fields: object) -> None:
    assert read_body(FORM, form) == Body(fields, is_form=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content_type", "raw", "field", "told"),
    [
        ("text/plain", b"x", "", "Content-Type"),
        ("", b"{}", "", "Content-Type"),
        ("application/json", b"[{}]", "", "must be an object"),
        ("application/json", b"{", "", "the body"),
        ("application/json", b'{"a": 1, "a": 2}', "", "the body"),
        ("application/json", b'{"a": "\\ud800"}', "", "the body"),
        ("application/json", b'{"\\udfff": 1}', "", "the body"),
        ("application/json", b"\xff", "", "the body"),
        (FORM, b"a=%FF", "", "UTF-8"),
        (FORM, b"a=%ED%A0%80", "", "UTF-8"),  # half of a pair
        (FORM, b"=1", "", "without a name"),
        (FORM, b"[a]=1", "", "without a name"),
        (FORM, b"a=1&a=2", "a", "twice"),
        (FORM, b"a[b]=1&a=2", "a", "twice"),
        (FORM, b"a=1&a[b]=2", "a.b", "two things"),
        (FORM, b"a[]=1&a[b]=2", "a.b", "two things"),
        (FORM, b"a[b=1", "a[b", "brackets"),
        (FORM, b"a[b]c=1", "a[b]c", "brackets"),
        (FORM, b"a[[b]]=1", "a[[b]]", "brackets"),
    ],
)
def test_what_cannot_be_read_is_refused(
    content_type: str, raw: bytes, field: str, told: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        read_body(content_type, raw)
    (error,) = refused.value.errors
    assert error.field == field
    assert told in error.message


@pytest.mark.parametrize(
    ("content_type", "raw"),
    [
        ("application/json", b" " * (BODY_BYTES_MAX + 1)),
        (FORM, b"&".join(b"a%d=" % number for number in range(FORM_FIELDS_MAX + 1))),
        (FORM, b"a" + b"[a]" * JSON_DEPTH_MAX + b"=1"),
    ],
)
def test_bodies_end_somewhere(content_type: str, raw: bytes) -> None:
    with pytest.raises(BadRequest):
        read_body(content_type, raw)


def test_bodies_reach_to_their_bounds() -> None:
    text = json.dumps({"a": "x" * (BODY_BYTES_MAX - len('{"a": ""}'))}).encode()
    assert len(text) == BODY_BYTES_MAX
    assert len(read_body("application/json", text).fields) == 1
    form = b"&".join(b"a%d=" % number for number in range(FORM_FIELDS_MAX))
    assert len(read_body(FORM, form).fields) == FORM_FIELDS_MAX


def test_a_query_is_a_short_form() -> None:
    assert read_query(b"") == {}
    assert read_query(b"filter[a]=1&b=") == {"filter": {"a": "1"}, "b": ""}
    with pytest.raises(BadRequest):
        read_query(b"&".join(b"a%d=" % number for number in range(QUERY_FIELDS_MAX + 1)))


def test_long_names_are_cut_short_where_they_are_repeated() -> None:
    name = b"a" * 5_000
    with pytest.raises(BadRequest) as refused:
        read_body(FORM, name + b"=1&" + name + b"=2")
    assert len(refused.value.errors[0].field) == NAME_SHOWN_MAX + 1


def test_a_form_has_so_many_levels_over_all_its_names() -> None:
    deep = "[x]" * 49  # 50 levels, with the name before them
    fields = FORM_STEPS_MAX // 50
    form = "&".join(f"a{number}{deep}=1" for number in range(fields))
    assert len(read_body(FORM, form.encode()).fields) == fields
    with pytest.raises(BadRequest) as refused:
        read_body(FORM, f"{form}&b=1".encode())
    (error,) = refused.value.errors
    assert error.message == (
        f"the names of its fields have more than {FORM_STEPS_MAX} levels together"
    )
