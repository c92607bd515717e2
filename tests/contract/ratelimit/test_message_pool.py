"""The descriptors of Envoy's messages are those of their .proto files, and are in nobody's way."""

from pathlib import Path

import grpc_tools
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc_tools import protoc

from tests.support.installed_wheel import ROOT
from tollgate.serve.ratelimit.codec.message_pool import MESSAGE_POOL
from tollgate.serve.ratelimit.codec.messages import RequestMessage

PROTOS = ROOT / "serve/ratelimit/codec/protos"


def test_descriptors_are_made_of_the_proto_files(tmp_path: Path) -> None:
    files = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    made = tmp_path / "messages.binpb"
    (tools,) = grpc_tools.__path__  # (it has protobuf's own files)
    folders = [f"--proto_path={PROTOS}", f"--proto_path={tools}/_proto"]
    written = ["--include_imports", f"--descriptor_set_out={made}"]
    assert protoc.main(["protoc", *folders, *written, *files]) == 0
    assert made.read_bytes() == (PROTOS / "messages.binpb").read_bytes(), "run scripts/messages"


def test_other_versions_of_the_same_messages_can_be_in_the_process() -> None:
    name = "envoy/service/ratelimit/v3/rls.proto"
    foreign = descriptor_pb2.FileDescriptorProto(
        name=name, package="envoy.service.ratelimit.v3", syntax="proto3"
    )
    foreign.message_type.add(name="RateLimitRequest").field.add(
        name="domain", number=9, type="TYPE_STRING", label="LABEL_OPTIONAL"
    )
    default = descriptor_pool.Default()
    with pytest.raises(KeyError):  # ours are not among everybody's
        default.FindFileByName(name)
    default.Add(foreign)
    full_name = RequestMessage.DESCRIPTOR.full_name
    assert default.FindMessageTypeByName(full_name).fields_by_name["domain"].number == 9
    assert MESSAGE_POOL.FindMessageTypeByName(full_name) is RequestMessage.DESCRIPTOR
    assert RequestMessage(domain="d").SerializeToString() == b"\x0a\x01d"
