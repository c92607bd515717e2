"""The messages that a control plane sends rules in (B20): what ratelimit.config.ratelimit.v3 holds.

No package publishes them, so they are written down here, field by field, in a pool of their own.
The messages of the stream itself are Envoy's.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2

PACKAGE = "ratelimit.config.ratelimit.v3"
RESOURCE_NAME = f"{PACKAGE}.RateLimitConfig"
RESOURCE_TYPE_URL = f"type.googleapis.com/{RESOURCE_NAME}"
STREAM_METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"

_FIELD = descriptor_pb2.FieldDescriptorProto
_TYPES = {"string": _FIELD.TYPE_STRING, "bool": _FIELD.TYPE_BOOL, "uint32": _FIELD.TYPE_UINT32}
# Of each message its fields, in the order of their numbers, from 1. `*`: a list.
_MESSAGES = {
    "RateLimitConfig": "name:string domain:string descriptors:RateLimitDescriptor*",
    "RateLimitDescriptor": (
        "key:string value:string rate_limit:RateLimitPolicy descriptors:RateLimitDescriptor* "
        "shadow_mode:bool detailed_metric:bool quota_mode:bool metadata:Struct"
    ),
    "RateLimitPolicy": (
        "unit:RateLimitUnit requests_per_unit:uint32 unlimited:bool name:string "
        "replaces:RateLimitReplace*"
    ),
    "RateLimitReplace": "name:string",
}
_UNITS = ("UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "WEEK")


def _add_field(message: descriptor_pb2.DescriptorProto, number: int, written: str) -> None:
    name, _, kind = written.partition(":")
    is_list = kind.endswith("*")
    label = _FIELD.LABEL_REPEATED if is_list else _FIELD.LABEL_OPTIONAL
    field = message.field.add(name=name, number=number, label=label)
    kind = kind.removesuffix("*")
    if kind in _TYPES:
        field.type = _TYPES[kind]
    elif kind == "RateLimitUnit":
        field.type, field.type_name = _FIELD.TYPE_ENUM, f".{PACKAGE}.{kind}"
    else:
        whole = ".google.protobuf.Struct" if kind == "Struct" else f".{PACKAGE}.{kind}"
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, whole


def _message_pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(
        name="ratelimit/config/ratelimit/v3/rls_conf.proto", package=PACKAGE, syntax="proto3"
    )
    file.dependency.append(struct_pb2.DESCRIPTOR.name)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, written in enumerate(fields.split(), start=1):
            _add_field(message, number, written)
    units = file.enum_type.add(name="RateLimitUnit")
    for number, name in enumerate(_UNITS):
        units.value.add(name=name, number=number)
    pool = descriptor_pool.DescriptorPool()
    struct = descriptor_pb2.FileDescriptorProto()
    struct_pb2.DESCRIPTOR.CopyToProto(struct)
    pool.Add(struct)
    pool.Add(file)
    return pool


MESSAGE_POOL = _message_pool()
# Made at run time, so a type checker cannot know their fields: hence `Any`.
ResourceMessage: Any = message_factory.GetMessageClass(
    MESSAGE_POOL.FindMessageTypeByName(RESOURCE_NAME)
)


def unit_name(number: int) -> str:
    """The name of a unit; of a number without one, the number, as the reference prints it."""
    return _UNITS[number] if 0 <= number < len(_UNITS) else str(number)
