"""The message classes of the rate-limit protocol, and the names it is called by (B15).

They are made in a pool of our own from the published ones, plus one field that those lack.
"""

from typing import Any

from envoy.service.ratelimit.v3 import rls_pb2
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FileDescriptor

SERVICE_NAME = "envoy.service.ratelimit.v3.RateLimitService"
METHOD_NAME = "ShouldRateLimit"
METHOD_PATH = f"/{SERVICE_NAME}/{METHOD_NAME}"


def _message_pool(root: FileDescriptor) -> descriptor_pool.DescriptorPool:
    """A pool of our own that holds `root` and all it imports, and knows `is_negative_hits`.

    The published classes lack that field (part A, Refunds), and the default pool, which other
    libraries share, refuses a second version of a file.
    """
    pool = descriptor_pool.DescriptorPool()
    names_added: set[str] = set()

    def add(file: FileDescriptor) -> None:
        if file.name in names_added:
            return
        names_added.add(file.name)
        for dependency in file.dependencies:
            add(dependency)
        proto = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(proto)
        if proto.package == "envoy.extensions.common.ratelimit.v3":
            _add_is_negative_hits(proto)
        pool.Add(proto)

    add(root)
    return pool


def _add_is_negative_hits(file: descriptor_pb2.FileDescriptorProto) -> None:
    descriptor = next(m for m in file.message_type if m.name == "RateLimitDescriptor")
    if all(field.name != "is_negative_hits" for field in descriptor.field):
        descriptor.field.add(
            name="is_negative_hits",
            json_name="isNegativeHits",
            number=4,
            type=descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
            label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
        )


MESSAGE_POOL = _message_pool(rls_pb2.DESCRIPTOR)


# The classes are made at run time, so a type checker cannot know their fields: hence `Any`.
def _message_class(name: str) -> Any:
    return message_factory.GetMessageClass(MESSAGE_POOL.FindMessageTypeByName(name))


RequestMessage = _message_class("envoy.service.ratelimit.v3.RateLimitRequest")
ResponseMessage = _message_class("envoy.service.ratelimit.v3.RateLimitResponse")
StructMessage = _message_class("google.protobuf.Struct")
