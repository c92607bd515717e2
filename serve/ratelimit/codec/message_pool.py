"""Makes the classes of Envoy's messages, in a pool of their own.

Names and numbers are in `protos/`, as .proto files; `messages.binpb` has their descriptors, written
by `scripts/messages`. protoc's own Python modules register in protobuf's default pool, which all
libraries of a process share: it refuses a file that another one has brought in another version, and
packages with Envoy's whole API lay old copies of other packages' files over those. In a pool of our
own nobody is in the way, and upb makes the same classes of it.
"""

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_DESCRIPTORS = Path(__file__).parent / "protos/messages.binpb"


def _message_pool(descriptors: bytes) -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    # protoc writes a file behind those that it imports.
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        pool.Add(file)
    return pool


MESSAGE_POOL = _message_pool(_DESCRIPTORS.read_bytes())


# The classes are made at run time, so a type checker cannot know their fields: hence `Any`.
def message_class(name: str) -> Any:
    """The class of the message with this full name."""
    return message_factory.GetMessageClass(MESSAGE_POOL.FindMessageTypeByName(name))
