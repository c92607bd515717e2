"""Rules from a real control plane on the loopback: asked for, taken, refused, survived (B20)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import trustme
from click.testing import CliRunner, Result
from google.protobuf import any_pb2

from tests.support.ratelimit.sent_rules import TYPE_URL, SentLimit, SentRule, limited, resource
from tests.support.servers.control_plane import ControlPlaneServer, sent_in
from tests.support.waiting import until
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.rules.rule_set import dump
from tollgate.actors.ratelimit.watching.in_force import LOAD_ERROR, LOAD_SUCCESS
from tollgate.actors.ratelimit.watching.subscription import ACKNOWLEDGED, REFUSED, Subscription
from tollgate.serve.commands.check_config import check_config
from tollgate.serve.ratelimit.rule_sources.control_plane import ControlPlane
from tollgate.serve.ratelimit.rule_sources.files import FileArchive
from tollgate.serve.ratelimit.rule_sources.resource_messages import DiscoveryResponse
from tollgate.serve.ratelimit.rule_sources.resources import read_resource
from tollgate.serve.settings.outside.control_plane import ControlPlaneSettings

QUICK = replace(ControlPlaneSettings(), retry_s=0.05, pause_min_s=0.05)
LOOK_EVERY_S = 0.05


@dataclass
class Client:
    """A subscription with its stream, and somebody who looks, as the actor does."""

    subscription: Subscription
    is_stopped: Event = field(default_factory=Event)

    def look_on(self) -> None:
        while not self.is_stopped.is_set():
            self.subscription.wait(LOOK_EVERY_S)
            self.subscription.look()

    @property
    def rules(self) -> str:
        """What is in force, as the debug port shows it."""
        generation = self.subscription.generation
        return "" if generation is None else dump(generation.rules)

    @property
    def away(self) -> str:
        return str(self.subscription.described()["away"])

    def wait_for_absence(self, reason: str) -> str:
        """What is said of the control plane, once this is a part of it."""
        return until(lambda: found if reason in (found := self.away) else "", f"{reason} is told")

    def wait_for(self, *lines: str) -> None:
        """Until exactly these limits are in force, each as `<path> <requests>`."""
        until(lambda: limits(self.rules) == sorted(lines), f"{lines} are in force")


def limits(rules: str) -> list[str]:
    found = []
    for line in rules.splitlines():
        path, _, rest = line.partition(": ")
        found.append(f"{path} {rest.partition('requests_per_unit=')[2].partition(',')[0]}")
    return sorted(found)


@contextmanager
def client_of(archive: Path, **settings: Any) -> Iterator[Client]:
    plane = replace(QUICK, **settings)
    load = partial(load_rules, merge_domains=False, read=read_resource)
    subscription = Subscription(
        plane.target, plane.node_id, FileArchive(archive), load, SystemClock()
    )
    client = Client(subscription)
    stream = ControlPlane(plane, subscription, lambda: 0.5)
    looker = Thread(target=client.look_on)
    looker.start()
    stream.start()
    try:
        yield client
    finally:
        stream.stop()
        client.is_stopped.set()
        looker.join()


@pytest.fixture
def server() -> Iterator[ControlPlaneServer]:
    with ControlPlaneServer() as server:
        yield server


@pytest.fixture
def client(server: ControlPlaneServer, tmp_path: Path) -> Iterator[Client]:
    with client_of(tmp_path / "rules.json", target=server.target) as client:
        yield client


def test_the_subscription_says_who_asks_for_what(
    server: ControlPlaneServer, tmp_path: Path
) -> None:
    server.publish("7", resource("edge", "foo", limited("k1", 3, "minute", "v1")))
    settings = {
        "target": server.target,
        "node_id": "test-node",
        "node_metadata": (("env", "prod"), ("zone", "a")),
        "headers": (("authorization", "Bearer x"), ("x-team", "edge")),
    }
    with client_of(tmp_path / "rules.json", **settings) as client:
        client.wait_for("foo.k1_v1 3")
        answer = server.answer_to("nonce-1")
    (stream,) = server.streams
    first = stream.requests[0]
    assert (first.type_url, answer.type_url) == (TYPE_URL, TYPE_URL)
    assert (list(first.resource_names), first.node.id) == ([], "test-node")
    assert dict(first.node.metadata) == {"env": "prod", "zone": "a"}
    assert sent_in(stream.requests) == [("", "", ""), ("7", "nonce-1", "")]
    assert stream.headers["authorization"] == "Bearer x"
    assert stream.headers["x-team"] == "edge"


def test_every_response_replaces_everything(server: ControlPlaneServer, client: Client) -> None:
    server.publish("1", resource("a", "foo", limited("k1", 3)))
    client.wait_for("foo.k1 3")
    server.publish("2", resource("a", "foo", limited("k2", 4)))
    client.wait_for("foo.k2 4")
    server.publish(
        "3", resource("a", "foo", limited("k2", 4)), resource("b", "bar", limited("x", 5))
    )
    client.wait_for("bar.x 5", "foo.k2 4")
    server.publish("4")
    client.wait_for()
    until(lambda: len(server.requests) == 5, "all are acknowledged")
    assert [version for version, _, _ in sent_in(server.requests)] == ["", "1", "2", "3", "4"]
    totals = client.subscription.totals()
    assert (totals[LOAD_SUCCESS], totals[LOAD_ERROR], totals[ACKNOWLEDGED]) == (4, 0, 4)


def test_what_is_wrong_is_refused_with_its_text(server: ControlPlaneServer, client: Client) -> None:
    server.publish("1", resource("a", "foo", limited("k1", 3)))
    client.wait_for("foo.k1 3")
    garbled = any_pb2.Any(type_url=TYPE_URL, value=b"\xff\xff")
    foreign = any_pb2.Any(type_url="type.googleapis.com/google.protobuf.Empty")
    without_unit = resource("b", "bar", SentRule("k", limit=SentLimit(0)))
    expected = {
        server.publish("2", garbled): "resource 1 of 1: cannot be decoded as ratelimit.config.",
        server.publish("3", foreign): "resource 1 of 1: is of type 'type.googleapis.com/google.",
        server.publish("4", without_unit): "b: invalid rate limit unit 'UNKNOWN'",
    }
    for nonce, text in expected.items():
        answer = server.answer_to(nonce)
        assert answer.version_info == "1"
        assert answer.error_detail.code == 3
        assert answer.error_detail.message.startswith(text)
    assert limits(client.rules) == ["foo.k1 3"]
    totals = client.subscription.totals()
    assert (totals[LOAD_ERROR], totals[REFUSED], totals[ACKNOWLEDGED]) == (1, 3, 1)
    server.publish("5", resource("a", "foo", limited("k1", 4)))
    client.wait_for("foo.k1 4")
    assert len(server.streams) == 1


def test_a_response_that_is_not_about_rules_leaves_them(
    server: ControlPlaneServer, client: Client
) -> None:
    server.publish("1", resource("a", "foo", limited("k1", 3)))
    client.wait_for("foo.k1 3")
    foreign = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
    for nonce, type_url in (("other", foreign), ("none", "")):
        response = DiscoveryResponse(version_info="2", nonce=nonce, type_url=type_url)
        server.send(response.SerializeToString())
        answer = server.answer_to(nonce)
        assert answer.version_info == "1"
        assert answer.error_detail.message == (
            f"the response: is of type '{type_url}', and not '{TYPE_URL}'"
        )
    server.send(b"")
    until(lambda: client.subscription.totals()[REFUSED] == 3, "an empty one is refused")
    assert limits(client.rules) == ["foo.k1 3"]


def test_a_restarted_control_plane_is_found_again(
    server: ControlPlaneServer, client: Client
) -> None:
    server.publish("1", resource("a", "foo", limited("k1", 3)))
    client.wait_for("foo.k1 3")
    server.answer_to("nonce-1")
    server.stop()
    client.wait_for_absence("cannot be reached")
    assert limits(client.rules) == ["foo.k1 3"]
    server.start()
    second = server.wait_for_streams(2)
    assert sent_in(second.requests[:1]) == [("1", "", "")]
    server.publish("2", resource("a", "foo", limited("k1", 9)))
    client.wait_for("foo.k1 9")
    until(lambda: client.away == "", "its return is told")


def test_what_is_no_response_ends_the_stream_and_not_the_thread(
    server: ControlPlaneServer, client: Client
) -> None:
    server.publish("1", resource("a", "foo", limited("k1", 3)))
    client.wait_for("foo.k1 3")
    server.send(b"\xff\xff\xff")
    server.wait_for_streams(2)
    assert limits(client.rules) == ["foo.k1 3"]
    server.publish("2", resource("a", "foo", limited("k1", 4)))
    client.wait_for("foo.k1 4")


def test_a_silent_control_plane_holds_up_nobody(server: ControlPlaneServer, client: Client) -> None:
    server.wait_for_streams(1)
    assert not client.subscription.look()
    server.publish("1", resource("a", "foo", limited("k1", 3)))
    client.wait_for("foo.k1 3")


def test_a_message_that_is_too_large_is_refused_by_its_size(
    server: ControlPlaneServer, tmp_path: Path
) -> None:
    server.publish("1", resource("a", "foo", limited("k" * 2_000, 3)))
    settings = {"target": server.target, "message_bytes_max": 1_000}
    with client_of(tmp_path / "rules.json", **settings) as client:
        told = client.wait_for_absence("has ended the stream")
        assert "see XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: RESOURCE_EXHAUSTED" in told
        server.publish("2", resource("a", "foo", limited("k1", 4)))
        client.wait_for("foo.k1 4")


def test_rules_outlive_their_control_plane_and_the_process(
    server: ControlPlaneServer, tmp_path: Path
) -> None:
    server.publish("1", resource("a", "foo", limited("k1", 3)))
    with client_of(tmp_path / "rules.json", target=server.target) as client:
        client.wait_for("foo.k1 3")
        server.answer_to("nonce-1")
    server.stop()
    with client_of(tmp_path / "rules.json", target=server.target) as client:
        assert limits(client.rules) == ["foo.k1 3"]
        client.wait_for_absence("cannot be reached")
        server.start()
        # It asks for everything: another process may have lost what this one only believes.
        second = server.wait_for_streams(2)
        assert sent_in(second.requests[:1]) == [("", "", "")]
        server.publish("2", resource("a", "foo", limited("k1", 4)))
        client.wait_for("foo.k1 4")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Authorities, and where their files are."""

    folder: Path
    ours: trustme.CA
    others: trustme.CA

    def authority(self, authority: trustme.CA) -> str:
        path = self.folder / f"{id(authority)}.pem"
        authority.cert_pem.write_to_path(str(path))
        return str(path)

    def pair(self, authority: trustme.CA) -> dict[str, str]:
        """A client's certificate and its key, as settings."""
        leaf = authority.issue_cert("tollgate.internal")
        cert, key = self.folder / "client.pem", self.folder / "client.key"
        leaf.cert_chain_pems[0].write_to_path(str(cert))
        leaf.private_key_pem.write_to_path(str(key))
        return {"cert": str(cert), "key": str(key)}


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path, trustme.CA(), trustme.CA())


@pytest.fixture
def secured(certificates: Certificates) -> Iterator[ControlPlaneServer]:
    """One that is called plane.internal, and wants certificates of our authority."""
    leaf = certificates.ours.issue_cert("plane.internal")
    with ControlPlaneServer(leaf, certificates.ours) as server:
        server.publish("1", resource("a", "foo", limited("k1", 3)))
        yield server


def tls_settings(server: ControlPlaneServer, certificates: Certificates) -> dict[str, Any]:
    """All that is right."""
    return {
        "target": server.target,
        "has_tls": True,
        "server_ca": certificates.authority(certificates.ours),
        "server_san": "plane.internal",
        **certificates.pair(certificates.ours),
    }


def test_mutual_tls(
    secured: ControlPlaneServer, certificates: Certificates, tmp_path: Path
) -> None:
    settings = tls_settings(secured, certificates)
    with client_of(tmp_path / "rules.json", **settings) as client:
        client.wait_for("foo.k1 3")


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("another authority", "its certificate is of no CA that we trust"),
        ("another name", "its certificate has another name"),
        ("no certificate", "as one does that does not take our certificate"),
        ("a foreign certificate", "as one does that does not take our certificate"),
        ("no TLS", "as one does that wants TLS"),
    ],
)
def test_without_trust_there_are_no_rules_and_the_reason_is_told(
    secured: ControlPlaneServer, certificates: Certificates, tmp_path: Path, wrong: str, hint: str
) -> None:
    changes: dict[str, dict[str, Any]] = {
        "another authority": {"server_ca": certificates.authority(certificates.others)},
        "another name": {"server_san": "localhost"},
        "no certificate": {"cert": "", "key": ""},
        "a foreign certificate": {},
        "no TLS": {"has_tls": False},
    }
    settings = tls_settings(secured, certificates) | changes[wrong]
    if wrong == "a foreign certificate":
        certificates.pair(certificates.others)
    with client_of(tmp_path / "rules.json", **settings) as client:
        told = client.wait_for_absence(hint)
        kind = "cannot be reached" if wrong == "no TLS" else "and we do not agree on TLS"
        assert f"the control plane {kind}: " in told
        assert client.rules == ""


@pytest.mark.parametrize("wrong", [b"no certificate", b"", b"\xff"])
def test_certificates_are_read_anew_for_every_try(
    secured: ControlPlaneServer, certificates: Certificates, tmp_path: Path, wrong: bytes
) -> None:
    settings = tls_settings(secured, certificates)
    authority = Path(settings["server_ca"])
    right = authority.read_bytes()
    authority.write_bytes(wrong)
    with client_of(tmp_path / "rules.json", **settings) as client:
        problem = "holds no PEM certificate of the control plane's CA"
        client.wait_for_absence(problem)
        authority.write_bytes(right)
        client.wait_for("foo.k1 3")


def checked(monkeypatch: pytest.MonkeyPatch, target: str, *options: str) -> Result:
    """`tollgate check-config --control-plane`, as an operator types it."""
    monkeypatch.setenv("CONFIG_GRPC_XDS_SERVER_URL", target)
    return CliRunner().invoke(check_config, ["--control-plane", *options])


def test_what_is_sent_can_be_checked_by_hand(
    server: ControlPlaneServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.publish("1", resource("b", "bar", limited("x", 5)), resource("a", "foo", SentRule("k")))
    result = checked(monkeypatch, server.target)
    assert result.stdout.splitlines() == ["checking a", "checking b", "all rate limit configs ok"]
    assert result.stderr.splitlines() == [
        "warning: a: 'k' has no effect: no value, no rate_limit and no descriptors"
    ]
    assert checked(monkeypatch, server.target, "--strict").exit_code == 1
    server.publish("2", resource("b", "foo"), resource("a", "foo", limited("x", 1, "day")))
    result = checked(monkeypatch, server.target)
    assert (result.exit_code, result.stderr) == (
        1,
        "error: b: duplicate domain 'foo' in config file\n",
    )
    assert checked(monkeypatch, server.target, "--merge-domain-configs").exit_code == 0
    server.publish("3", any_pb2.Any(type_url=TYPE_URL, value=b"\xff"))
    result = checked(monkeypatch, server.target)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: resource 1 of 1: cannot be decoded as ")
    # Nobody was told that anything is in force, or refused.
    assert {nonce for _, nonce, _ in sent_in(server.requests)} == {""}


def test_a_check_of_nobody_says_why(
    server: ControlPlaneServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.stop()
    result = checked(monkeypatch, server.target)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {server.target}: UNAVAILABLE: failed to connect")
    assert checked(monkeypatch, server.target, "folder").exit_code == 2
