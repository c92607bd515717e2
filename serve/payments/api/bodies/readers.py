"""Bodies and queries in (part A, "Bodies in" and "Lists").

    media type                            body
    application/json, any +json           one JSON object; an empty array is an empty one
    application/x-www-form-urlencoded     a form; brackets nest: company[country]=DK, list[]=1
    any or none, with nothing in it       no fields
    anything else                         refused

In a query the brackets of `filter[…]` mean the same. What is there twice is refused: one of the two
would be lost. Names and values in refusals are the caller's own, and cut short.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tollgate.serve.net.form_values import form_text
from tollgate.serve.payments.api.bodies.strict_json import JSON_DEPTH_MAX, JsonError, read_json
from tollgate.serve.payments.api.rejections import BadRequest, FieldError

BODY_BYTES_MAX = 1024 * 1024
FORM_FIELDS_MAX = 1_000
QUERY_FIELDS_MAX = 50
FORM_NAME_LENGTH_MAX = 1_024
# Of all names of a form or a query together: a[b][] has three.
FORM_STEPS_MAX = 4_000
NAME_SHOWN_MAX = 100
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Body:
    """The fields of a request. `is_form`: values are texts, booleans are yes and no."""

    fields: Mapping[str, object] = field(default_factory=dict)
    is_form: bool = False


NO_BODY = Body()


def read_body(content_type: str, raw: bytes, bytes_max: int = BODY_BYTES_MAX) -> Body:
    """The fields of a body of at most `bytes_max`. Raises BadRequest."""
    if not raw:
        return NO_BODY
    if len(raw) > bytes_max:
        raise too_large(bytes_max)
    media_type = content_type.partition(";")[0].strip().lower()
    if is_json(media_type):
        return _json_body(raw)
    if media_type == FORM:
        return Body(read_form(raw, FORM_FIELDS_MAX), is_form=True)
    raise BadRequest(
        FieldError("", f"the Content-Type of a body must be application/json or {FORM}")
    )


def too_large(bytes_max: int) -> BadRequest:
    """The refusal of a body above its bound."""
    return BadRequest(FieldError("", f"the body is larger than {bytes_max} bytes"))


def is_json(media_type: str) -> bool:
    """True if a media type, in lower case and without parameters, is JSON or based on it."""
    return media_type == "application/json" or media_type.endswith("+json")


def read_query(query: bytes) -> Mapping[str, object]:
    """The fields of a query, nested by their brackets. Raises BadRequest."""
    return read_form(query, QUERY_FIELDS_MAX) if query else {}


def read_form(text: bytes, fields_max: int) -> dict[str, object]:
    """The fields of a form or a query. Raises BadRequest."""
    pairs = [pair for pair in text.split(b"&", 2 * fields_max) if pair]
    if len(pairs) > fields_max or (pairs and b"&" in pairs[-1]):
        raise BadRequest(FieldError("", f"there are more than {fields_max} fields"))
    root: dict[str, object] = {}
    steps = 0
    for pair in pairs:
        name, _, value = pair.partition(b"=")
        path = _path(_decoded(name))
        steps += len(path)
        if steps > FORM_STEPS_MAX:
            why = f"the names of its fields have more than {FORM_STEPS_MAX} levels together"
            raise BadRequest(FieldError("", why))
        _put(root, path, _decoded(value))
    return root


def _json_body(raw: bytes) -> Body:
    try:
        value = read_json(raw)
    except JsonError as error:
        raise BadRequest(FieldError("", f"the body {error}")) from None
    if value == []:
        return NO_BODY  # (PHP's `json_encode(array())`)
    if not isinstance(value, dict):
        raise BadRequest(FieldError("", "the body must be an object"))
    return Body(value)


def _decoded(text: bytes) -> str:
    try:
        return form_text(text)
    except UnicodeDecodeError:
        raise BadRequest(FieldError("", "names and values must be UTF-8")) from None


def _path(name: str) -> list[str]:
    """`a[b][]` is a, b and the empty text, which means the next of a list."""
    if len(name) > FORM_NAME_LENGTH_MAX:
        why = f"is a name of more than {FORM_NAME_LENGTH_MAX} characters"
        raise BadRequest(FieldError(_shown(name), why))
    head, *rest = name.split("[", JSON_DEPTH_MAX)
    if len(rest) == JSON_DEPTH_MAX:
        why = f"is nested deeper than {JSON_DEPTH_MAX} levels"
        raise BadRequest(FieldError(_shown(".".join(_inner(name))), why))
    if any(step.find("]") != len(step) - 1 for step in rest):
        raise BadRequest(FieldError(_shown(name), "has brackets that do not match"))
    return [head, *(step[:-1] for step in rest)]


def _inner(name: str) -> list[str]:
    return [step.removesuffix("]") for step in name.split("[")]


def _put(root: dict[str, object], path: list[str], value: str) -> None:
    name = _dotted(path)
    if not path[0]:
        raise BadRequest(FieldError("", "there is a field without a name"))
    place: object = root
    for position, step in enumerate(path):
        is_last = position == len(path) - 1
        child: object = value if is_last else ([] if path[position + 1] == "" else {})
        if isinstance(place, list) and step == "" and is_last:
            place.append(child)
        elif isinstance(place, dict) and step != "" and (step not in place or not is_last):
            place = place.setdefault(step, child)
        else:
            raise BadRequest(FieldError(_shown(name), "is there twice, or is two things at once"))


def _dotted(path: list[str]) -> str:
    return ".".join(step for step in path if step)


def _shown(name: str) -> str:
    return name if len(name) <= NAME_SHOWN_MAX else f"{name[:NAME_SHOWN_MAX]}…"
