"""Parameters of queries that a call does not have: refused, with the nearest name that it has.

A misspelt `at` would answer with the balance of now, a misspelt `before` with the first page for
ever. The names are those of the API's document, `filter[test]` for one; values are their readers'.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from tollgate.serve.payments.api.bodies.readers import NAME_SHOWN_MAX
from tollgate.serve.payments.api.rejections import BadRequest, FieldError

BOUNDS = ("before", "after")
PAGE = ("limit", "sort", *BOUNDS)


def filter_name(name: str) -> str:
    """A filter as it stands in a query."""
    return f"filter[{name}]"


def require_known(query: Mapping[str, object], known: Sequence[str]) -> None:
    """Checks that a call with these parameters has all fields of a query. Raises BadRequest."""
    errors = list(_unknown(query, known)) if query else []
    if errors:
        raise BadRequest(*errors)


def _unknown(query: Mapping[str, object], known: Sequence[str]) -> Iterator[FieldError]:
    heads = {name.partition("[")[0] for name in known}
    for head, value in query.items():
        if head not in heads:
            yield FieldError(head[:NAME_SHOWN_MAX], _refusal(head, known))
        elif head not in known and isinstance(value, dict):
            for inner in value:
                if f"{head}[{inner}]" not in known:
                    field = f"{head}.{inner[:NAME_SHOWN_MAX]}"
                    yield FieldError(field, _refusal(inner, known))


def _refusal(name: str, known: Sequence[str]) -> str:
    """A filter may be meant by what stands in its brackets, too."""
    meant = {_inner(each): each for each in known} | {each: each for each in known}
    near = get_close_matches(name[:NAME_SHOWN_MAX], meant, n=1)
    if near:
        return f"is unknown; did you mean {meant[near[0]]}?"
    return f"is unknown: this call has {', '.join(known) or 'no parameters'}"


def _inner(name: str) -> str:
    return name.partition("[")[2].removesuffix("]") or name
