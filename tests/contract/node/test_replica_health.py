"""The end of a replica: HAProxy calls it until it has heard of the successor."""

import asyncio
from typing import Any

import pytest
from ray.serve._private import replica
from ray.serve._private.http_util import convert_object_to_asgi_messages
from starlette.types import Message, Receive, Scope, Send

from tollgate.serve.node.environment import node_environment
from tollgate.serve.node.replica_health import (
    DRAINING,
    DRAINING_PERIOD,
    HEALTH_PATH,
    HealthyUntilClosed,
    leave_at_once,
)
from tollgate.serve.node.socket_folder import remove_socket_folder
from tollgate.serve.settings import Settings


def test_a_replica_stays_until_haproxy_has_heard_that_it_goes(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = str(tmp_path_factory.mktemp("data"))
    settings = Settings.from_environment({"TOLLGATE_DATA": folder})
    try:
        assert node_environment(settings)[DRAINING_PERIOD] == "5"
    finally:
        remove_socket_folder(folder)


def test_a_replica_of_a_node_that_stops_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, DRAINING_PERIOD, 5.0)
    leave_at_once()
    assert getattr(replica, DRAINING_PERIOD) == 0.0
    assert DRAINING_PERIOD in replica.Replica._perform_graceful_shutdown.__code__.co_names


def status_of(said: str, status: int, path: str = HEALTH_PATH) -> int:
    """The status that a caller hears when a replica says this."""
    heard: list[Message] = []

    async def replicas_app(_: Scope, receive: Receive, send: Send) -> None:
        for message in convert_object_to_asgi_messages(said, status_code=status):
            await send(message)

    async def receive() -> Any:
        raise AssertionError("there is nothing to read")

    async def send(message: Message) -> None:
        heard.append(message)

    asyncio.run(HealthyUntilClosed(replicas_app)({"type": "http", "path": path}, receive, send))
    assert heard[1]["body"] == said.encode()
    return int(heard[0]["status"])


def test_a_replica_is_healthy_until_it_closes() -> None:
    assert DRAINING.decode() in replica.Replica._dataplane_health_check.__code__.co_consts
    assert status_of("DRAINING", 503) == 200
    assert status_of("success", 200) == 200


def test_a_replica_that_is_unwell_says_so() -> None:
    assert status_of("UNHEALTHY", 503) == 503
    assert status_of("DRAINING", 503, "/json") == 503
