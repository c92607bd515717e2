"""The schema of a body as a form: flat names with brackets, booleans as yes and no."""

from collections.abc import Iterator, Mapping

from tollgate.actors.kernel.json_value import Json

_BOOLEAN: Json = {"type": "string", "enum": ["yes", "no"]}


def form_schema(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """The same fields as `schema`, by the names that they have in a form. What may hold anything
    (custom data) is left out: there a form's names are the caller's."""
    required: list[str] = []
    properties: Json = {}
    for name, field, is_required in _fields(schema, definitions, "", is_required=True):
        properties[name] = field
        if is_required:
            required.append(name)
    flat: Json = {"type": "object", "properties": properties}
    return flat | ({"required": required} if required else {})


def _fields(
    schema: Json, definitions: Mapping[str, Json], prefix: str, *, is_required: bool
) -> Iterator[tuple[str, Json, bool]]:
    needed = schema.get("required", ())
    for name, field in schema["properties"].items():
        place = f"{prefix}[{name}]" if prefix else name
        is_needed = is_required and name in needed
        kind = _resolved(field, definitions)
        if "properties" in kind:
            yield from _fields(kind, definitions, place, is_required=is_needed)
        elif kind.get("type") == "boolean":
            yield place, dict(_BOOLEAN), is_needed
        elif kind.get("type") in ("string", "integer"):
            yield place, kind, is_needed


def _resolved(field: Json, definitions: Mapping[str, Json]) -> Json:
    """Without references, and of alternatives the first: the others say that it is absent."""
    if "anyOf" in field:
        return _resolved(field["anyOf"][0], definitions)
    reference = field.get("$ref")
    if reference is not None:
        return _resolved(definitions[reference.rpartition("/")[2]], definitions)
    return {name: value for name, value in field.items() if name not in ("default", "title")}
