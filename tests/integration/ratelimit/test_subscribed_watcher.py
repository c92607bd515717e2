"""The config watcher as a real actor that listens to a control plane."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import ray

from tests.integration.conftest import NAMESPACE, kill
from tests.support.ratelimit.sent_rules import limited, resource
from tests.support.servers.control_plane import ControlPlaneServer, sent_in
from tests.support.waiting import until
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.watching.actor import start_watcher
from tollgate.actors.ratelimit.watching.in_force import LOAD_ERROR, LOAD_SUCCESS
from tollgate.actors.ratelimit.watching.subscription import (
    ACKNOWLEDGED,
    AWAY,
    REFUSED,
    Subscription,
)
from tollgate.serve.ratelimit.rule_sources.control_plane import ControlPlane
from tollgate.serve.ratelimit.rule_sources.files import FileArchive
from tollgate.serve.ratelimit.rule_sources.resources import read_resource
from tollgate.serve.settings.outside.control_plane import ControlPlaneSettings


def subscribe(target: str, archive: Path) -> Subscription:
    settings = replace(ControlPlaneSettings(), target=target, retry_s=0.05, pause_min_s=0.05)
    load = partial(load_rules, merge_domains=False, read=read_resource)
    subscription = Subscription(target, "node", FileArchive(archive), load, SystemClock())
    ControlPlane(settings, subscription, lambda: 0.5).start()
    return subscription


@pytest.fixture
def server() -> Iterator[ControlPlaneServer]:
    with ControlPlaneServer() as server:
        yield server


@pytest.fixture
def watcher(
    server: ControlPlaneServer,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    end_after: Callable[[Any], Any],
) -> Any:
    make = partial(subscribe, server.target, tmp_path / "rules.json")
    return end_after(start_watcher(request.node.name, NAMESPACE, make, 0.25))


def described(watcher: Any) -> dict[str, Any]:
    found: dict[str, Any] = ray.get(watcher.describe.remote(), timeout=60)
    return found


def in_force(watcher: Any) -> tuple[int, str, str]:
    """The generation, its version, and the error of the last load."""
    found = described(watcher)
    return found["generation"], found["version"], found["error"]


def test_a_watcher_that_listens_to_a_control_plane(
    server: ControlPlaneServer, watcher: Any
) -> None:
    # It answers before the control plane has said anything.
    assert in_force(watcher) == (0, "", "")
    assert ray.get(watcher.dump.remote(), timeout=60) == ""
    server.publish("1", resource("a", "foo", limited("k1", 3)))
    until(lambda: in_force(watcher) == (1, "1", ""), "the rules are in force")
    generation = ray.get(watcher.other_than.remote("", 20.0), timeout=60)
    assert list(generation.rules.domains) == ["foo"]

    refused = server.publish("2", resource("a", ""))
    assert server.answer_to(refused).error_detail.message == (
        "a: config file cannot have empty domain"
    )
    wrong = (1, "1", "a: config file cannot have empty domain")
    until(lambda: in_force(watcher) == wrong, "the error is told")
    delta = ray.get(watcher.drain_statistics.remote(), timeout=60)
    assert delta.counts == {LOAD_SUCCESS: 1, LOAD_ERROR: 1, ACKNOWLEDGED: 1, REFUSED: 1}
    assert delta.gauges == {AWAY: 0.0}
    assert ray.get(watcher.drain_statistics.remote(), timeout=60).counts == {}

    # Another process goes on with the last good rules, while the control plane is away, too.
    server.stop()
    killed = kill(watcher)
    until(lambda: described(watcher)["pid"] != killed, "another process listens")
    assert in_force(watcher) == (1, "1", "")
    until(lambda: "cannot be reached" in described(watcher)["away"], "the absence is told")
    server.start()
    server.publish("3", resource("a", "foo", limited("k1", 4)))
    until(lambda: in_force(watcher) == (2, "3", ""), "the new rules are in force")
    assert described(watcher)["source"] == f"control plane {server.target}"
    assert sent_in([server.answer_to("nonce-3")]) == [("3", "nonce-3", "")]
