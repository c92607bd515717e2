"""Envoy's messages, as our .proto files have them, are those that Envoy publishes (B15, B20)."""

from pathlib import Path

import yaml
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from tollgate.serve.ratelimit.codec import message_pool
from tollgate.serve.ratelimit.codec.message_pool import MESSAGE_POOL
from tollgate.serve.ratelimit.codec.messages import METHOD_NAME, SERVICE_NAME

PUBLISHED: dict[str, dict[str, int | str]] = yaml.safe_load(
    (Path(__file__).parent / "protocol/published_names.yaml").read_text()
)
PROTOS = Path(message_pool.__file__).parent / "protos"
# Kinds of a field that is no message and no enum, by their numbers in a descriptor.
KINDS = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}
OURS = {"ratelimit/config/ratelimit/v3/rls_conf.proto"}
YOUNGER = {
    "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor": {"is_negative_hits": "4 bool"}
}


def described(field: FieldDescriptor) -> str:
    """`number [repeated] kind [of oneof]`."""
    kind = field.message_type or field.enum_type
    words = [str(field.number), *(["repeated"] if field.is_repeated else [])]
    words.append(KINDS[field.type] if kind is None else kind.full_name)
    if field.containing_oneof is not None:
        words += ["of", field.containing_oneof.name]
    return " ".join(words)


def numbers(enum: EnumDescriptor) -> dict[str, int | str]:
    return {value.name: value.number for value in enum.values}


def names_in(file: str) -> dict[str, dict[str, int | str]]:
    """What each message and enum of a file has, by its full name."""
    found: dict[str, dict[str, int | str]] = {}
    described_file = MESSAGE_POOL.FindFileByName(file)
    found |= {e.full_name: numbers(e) for e in described_file.enum_types_by_name.values()}
    messages = list(described_file.message_types_by_name.values())
    while messages:
        message = messages.pop()
        found[message.full_name] = {field.name: described(field) for field in message.fields}
        found |= {enum.full_name: numbers(enum) for enum in message.enum_types}
        messages += message.nested_types
    return found


def test_names_and_numbers_are_the_published_ones() -> None:
    files = {str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto")} - OURS
    ours = {name: names for file in files for name, names in names_in(file).items()}
    for name, fields in YOUNGER.items():
        for field, description in fields.items():
            assert ours[name].pop(field) == description
    assert ours == PUBLISHED


def test_the_service_is_the_published_one() -> None:
    (method,) = MESSAGE_POOL.FindServiceByName(SERVICE_NAME).methods
    assert (method.name, method.containing_service.file.name) == (
        METHOD_NAME,
        "envoy/service/ratelimit/v3/rls.proto",
    )
    assert (method.client_streaming, method.server_streaming) == (False, False)
    assert method.input_type.full_name == "envoy.service.ratelimit.v3.RateLimitRequest"
    assert method.output_type.full_name == "envoy.service.ratelimit.v3.RateLimitResponse"
