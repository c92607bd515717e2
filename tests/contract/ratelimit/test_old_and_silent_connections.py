"""Connections of gRPC that end: those of callers by their age, a control plane's by pings."""

from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

import grpc
import pytest

from tests.support.ratelimit.grpc_peers import PATIENCE_S, World, caller
from tests.support.ratelimit.sent_rules import limited, resource
from tests.support.servers.control_plane import ControlPlaneServer
from tests.support.servers.gated_proxy import gated_proxy
from tests.support.waiting import until
from tollgate.serve.ratelimit.fronts.front import ListenAddress
from tollgate.serve.ratelimit.rule_sources import control_plane
from tollgate.serve.ratelimit.rule_sources.control_plane import STREAM_METHOD, open_channel
from tollgate.serve.ratelimit.rule_sources.resource_messages import DiscoveryRequest
from tollgate.serve.settings.choices import GrpcFront
from tollgate.serve.settings.outside.control_plane import ControlPlaneSettings


@pytest.mark.parametrize("grace_s", [0.1, 2 * PATIENCE_S])
def test_calls_on_an_old_connection_have_its_grace(grace_s: float, world: World) -> None:
    """A call that is being decided outlives the age of its connection, and the grace not."""
    door = ListenAddress("127.0.0.1", 0, connection_age_s=0.1, connection_age_grace_s=grace_s)
    front = world.front(GrpcFront.GRPCIO, Path("/nonexistent"), door)
    front.start()
    with caller(front.address) as peer:
        states: list[grpc.ChannelConnectivity] = []
        world.decisions.hold()
        call = peer.decide.future(b"x", timeout=PATIENCE_S)
        world.decisions.wait_for_a_batch()
        peer.channel.subscribe(states.append)
        until(lambda: grpc.ChannelConnectivity.IDLE in states[1:], "the connection is old")
        if grace_s < PATIENCE_S:
            assert call.exception().code() is grpc.StatusCode.UNAVAILABLE
        world.decisions.release()
        if grace_s > PATIENCE_S:
            assert call.result() == b"re:x"
    front.drain(0)


def test_a_control_plane_that_is_cut_off_without_a_word_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By pings: nothing else is sent where rules do not change."""
    for name in ("KEEPALIVE_EVERY_S", "KEEPALIVE_ANSWER_WITHIN_S"):
        monkeypatch.setattr(control_plane, name, 1)
    asked: SimpleQueue[bytes | None] = SimpleQueue()
    asked.put(DiscoveryRequest().SerializeToString())
    with ControlPlaneServer() as server, gated_proxy(server.port) as proxy:
        server.publish("1", resource("a", "foo", limited("k1", 3)))
        settings = replace(ControlPlaneSettings(), target=f"localhost:{proxy.port}")
        with open_channel(settings) as channel:
            stream = channel.stream_stream(STREAM_METHOD, bytes, bytes)
            sent = stream(iter(asked.get, None), timeout=PATIENCE_S / 2)
            next(sent)
            with proxy.held(), pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
                next(sent)
        asked.put(None)
