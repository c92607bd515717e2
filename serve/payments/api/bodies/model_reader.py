"""Reads the fields of a body into the model that declares them, and says everything that is wrong
at once. Null and the empty text mean absent, and so does a part whose fields are all absent. An
empty array where an object belongs is an empty object: PHP cannot tell the two apart.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from types import NoneType
from typing import Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

from tollgate.serve.payments.api.bodies.readers import NAME_SHOWN_MAX, Body
from tollgate.serve.payments.api.bodies.wire_types import Reading
from tollgate.serve.payments.api.rejections import BadRequest, FieldError

REQUIRED = "is required"
# No body has half as many; each unknown one is told with the name that may be meant.
NAMES_MAX = 50
M = TypeVar("M", bound="RequestBody")


class RequestBody(BaseModel):
    """The fields of a body. `keeps_empty`: fields in which the empty text is a value.
    `judged_later`: required ones whose absence the handler refuses in words of its own. `unknown`:
    the refusal of other fields; empty: the nearest name is offered."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    keeps_empty: ClassVar[frozenset[str]] = frozenset()
    judged_later: ClassVar[tuple[str, ...]] = ()
    unknown: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _present(cls, given: object) -> object:
        if given == []:
            given = {}
        if not isinstance(given, Mapping):
            raise PydanticCustomError("refused", "{why}", {"why": "must be an object"})
        if len(given) > NAMES_MAX:
            why = f"has more than {NAMES_MAX} fields"
            raise PydanticCustomError("refused", "{why}", {"why": why})
        present = {
            name: value
            for name, value in given.items()
            if value is not None and (value != "" or name in cls.keeps_empty)
        }
        for name in cls._parts():
            present.setdefault(name, {})
        return dict.fromkeys(cls.judged_later) | present

    @classmethod
    def _parts(cls) -> tuple[str, ...]:
        """The required fields that are objects with fields of their own."""
        return tuple(
            name
            for name, field in cls.model_fields.items()
            if field.is_required()
            and isinstance(field.annotation, type)
            and issubclass(field.annotation, RequestBody)
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """With every way to leave a field out."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        required = schema.get("required", ())
        for name, field in schema.get("properties", {}).items():
            if name not in required:
                schema["properties"][name] = _optional(field)
        return schema


def _optional(field: dict[str, Any]) -> dict[str, Any]:
    field.pop("default", None)
    ways = [each for each in field.pop("anyOf", [field]) if each != {"type": "null"}]
    shown = {name: field.pop(name) for name in ("description", "examples") if name in field}
    return {"anyOf": [*ways, {"enum": [None, ""]}]} | shown


def read_model(model: type[M], body: Body, reading: Reading) -> M:
    """The body as the model. Raises BadRequest."""
    try:
        return model.model_validate(body.fields, context=reading)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise BadRequest(*(_field_error(each, model) for each in found)) from None


def _field_error(found: ErrorDetails, model: type[RequestBody]) -> FieldError:
    place = ".".join(str(step)[:NAME_SHOWN_MAX] for step in found["loc"])
    match found["type"]:
        case "missing":
            return FieldError(place, REQUIRED)
        case "extra_forbidden":
            return FieldError(place, model.unknown or _nearest(model, found["loc"]))
    assert found["type"] == "refused", "every field has a check of this house"
    context = found["ctx"]
    return FieldError(context.get("field") or place, context["why"])


def _nearest(model: type[RequestBody], loc: tuple[int | str, ...]) -> str:
    """The refusal of a field that is none, perhaps a misspelt one."""
    for step in loc[:-1]:
        declared = model.model_fields[str(step)].annotation
        part = next((each for each in get_args(declared) if each is not NoneType), declared)
        assert isinstance(part, type), "only parts have fields"
        assert issubclass(part, RequestBody), "only parts have fields"
        model = part
    near = get_close_matches(str(loc[-1])[:NAME_SHOWN_MAX], model.model_fields, n=1)
    return f"is unknown; did you mean {near[0]}?" if near else "is unknown"
