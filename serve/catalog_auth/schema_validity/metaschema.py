"""The metaschema of JSON Schema draft-07, by hand: is this value a schema?

Formats are not asserted, so a pattern may be no regular expression here. Takes no stack: a schema
may be as deep as a document can be.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import TypeGuard

from tollgate.serve.catalog_auth.document.paths import Path, ReversePath, forward_path
from tollgate.serve.catalog_auth.document.shown_values import shown

SIMPLE_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


class _Of(Enum):
    """The place in which a keyword holds schemas of its own."""

    SCHEMA = "schema"
    SCHEMAS = "list of schemas"
    MAP = "map of schemas"
    SCHEMA_OR_LIST = "schema or list of schemas"
    DEPENDENCIES = "map of schemas or lists of names"


_INNER = {
    **dict.fromkeys(("additionalItems", "contains", "additionalProperties"), _Of.SCHEMA),
    **dict.fromkeys(("propertyNames", "if", "then", "else", "not"), _Of.SCHEMA),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _Of.SCHEMAS),
    **dict.fromkeys(("definitions", "properties", "patternProperties"), _Of.MAP),
    "items": _Of.SCHEMA_OR_LIST,
    "dependencies": _Of.DEPENDENCIES,
}


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    """A non-negative integer, as JSON Schema counts: 2.0 is one."""
    return _is_number(value) and value >= 0 and value == value // 1


def _are_names(value: object) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(name, str) for name in value)
        and len(set(value)) == len(value)
    )


def _is_type(value: object) -> bool:
    if isinstance(value, str):
        return value in SIMPLE_TYPES
    return _are_names(value) and value != [] and all(name in SIMPLE_TYPES for name in _list(value))


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def _is(kind: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind)


_TEXTS = ("$id", "$schema", "$ref", "$comment", "title", "description", "pattern", "format")
_LIMITS = ("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum")
_COUNTS = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties")
# What the value of a keyword has to be: how it is told, and what it is called.
_PLAIN: Mapping[str, tuple[Callable[[object], bool], str]] = {
    **dict.fromkeys((*_TEXTS, "contentMediaType", "contentEncoding"), (_is(str), "a text")),
    **dict.fromkeys(("readOnly", "writeOnly", "uniqueItems"), (_is(bool), "true or false")),
    **dict.fromkeys(("examples", "enum"), (_is(list), "a list")),
    **dict.fromkeys(_LIMITS, (_is_number, "a number")),
    **dict.fromkeys(_COUNTS, (_is_count, "a non-negative integer")),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "required": (_are_names, "a list of different names"),
    "type": (_is_type, f"one of {', '.join(SIMPLE_TYPES)}, or a list of some of these"),
}


def is_schema(value: object) -> bool:
    """Tells whether the metaschema takes this value."""
    return value is True or value is False or next(offences(value), None) is None


def offences(schema: object) -> Iterator[tuple[Path, str]]:
    """Every (path within the schema, what is wrong there), nothing for a schema."""
    rest: list[tuple[ReversePath, object]] = [(None, schema)]
    while rest:
        reverse_path, value = rest.pop()
        if isinstance(value, bool):
            continue
        if not isinstance(value, dict):
            yield (
                forward_path(reverse_path),
                f"a schema is an object or true or false, not {shown(value)}",
            )
            continue
        for keyword, inner in value.items():
            here = (reverse_path, keyword)
            if (plain := _PLAIN.get(keyword)) is not None:
                is_right, what = plain
                if not is_right(inner):
                    yield forward_path(here), f"{keyword} has to be {what}, not {shown(inner)}"
            elif (of := _INNER.get(keyword)) is not None:
                schemas = _schemas_of(of, inner)
                if schemas is None:
                    yield (
                        forward_path(here),
                        f"{keyword} has to be a {of.value}, not {shown(inner)}",
                    )
                else:
                    rest += [
                        (here if step is None else (here, step), inner) for step, inner in schemas
                    ]


def _schemas_of(of: _Of, value: object) -> list[tuple[str | int | None, object]] | None:
    """The schemas that a keyword holds, by the step to them (None: it is one itself); None when it
    is of a wrong shape."""
    if of is _Of.SCHEMA or (of is _Of.SCHEMA_OR_LIST and not isinstance(value, list)):
        return [(None, value)]
    if of in (_Of.SCHEMAS, _Of.SCHEMA_OR_LIST):
        if not isinstance(value, list) or not value:
            return None
        return list(enumerate(value))
    if not isinstance(value, dict):
        return None
    if of is _Of.DEPENDENCIES:
        value = {name: inner for name, inner in value.items() if not _are_names(inner)}
    return list(value.items())


def inner_schemas(schema: object) -> Iterator[tuple[ReversePath, Mapping[str, object]]]:
    """Every (way to it, object) of a schema and the schemas within it."""
    rest: list[tuple[ReversePath, object]] = [(None, schema)]
    while rest:
        reverse_path, value = rest.pop()
        if not isinstance(value, dict):
            continue
        yield reverse_path, value
        for keyword, inner in value.items():
            of = _INNER.get(keyword)
            schemas = None if of is None else _schemas_of(of, inner)
            here = (reverse_path, keyword)
            rest += [(here if step is None else (here, step), one) for step, one in schemas or ()]
