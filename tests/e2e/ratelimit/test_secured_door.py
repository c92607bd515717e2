"""The other gRPC door: TLS on a unix socket, for clients with a certificate; rules in a ConfigMap;
traces of calls that bring one.

One Tollgate has all of it, together with settings that show in its answers.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.e2e.callers import CALL_TIMEOUT_S, Call, grpc_traffic, own_connection, question
from tests.e2e.conftest import StartTollgate
from tests.support.processes.tollgate import TollgateProcess
from tests.support.ratelimit.otlp_collector import Received, attributes, http_collector
from tests.support.ratelimit.service_stub import Code, RateLimitServiceStub

PROXY = "proxy.internal"
HEALTH_STATUS = health_pb2.HealthCheckResponse.ServingStatus


class ConfigMap:
    """Rule files as Kubernetes mounts them: links through `..data`, which is swapped as a whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._version = 0
        folder.mkdir(parents=True)

    def publish(self, files: dict[str, str]) -> None:
        """Put these files in place of all there are."""
        self._version += 1
        contents = self.folder / f"..version_{self._version}"
        contents.mkdir()
        for name, text in files.items():
            (contents / name).write_text(text)
        data, draft = self.folder / "..data", self.folder / "..data_tmp"
        before = data.resolve() if data.is_symlink() else None
        draft.symlink_to(contents.name)
        draft.replace(data)
        for link in self.folder.glob("[!.]*"):
            if link.name not in files:
                link.unlink()
        for name in files:
            link = self.folder / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        if before is not None:
            shutil.rmtree(before)


def rule_text(limit: int) -> str:
    return (
        "domain: mounted\n"
        "descriptors:\n"
        f"  - {{key: user, rate_limit: {{unit: year, requests_per_unit: {limit}}}}}\n"
    )


@dataclass(frozen=True, slots=True)
class Secured:
    """A Tollgate behind TLS, and what its clients need."""

    tollgate: TollgateProcess
    address: str
    authority: trustme.CA
    certificate: Path
    key: Path
    rules: ConfigMap

    def connection(
        self, client: trustme.LeafCert | None, authority: trustme.CA | None = None
    ) -> grpc.Channel:
        return own_connection(self.address, self.credentials(client, authority))

    def credentials(
        self, client: trustme.LeafCert | None, authority: trustme.CA | None = None
    ) -> grpc.ChannelCredentials:
        """Credentials of a caller that trusts `authority`, by default the one of the door."""
        trusted = (authority or self.authority).cert_pem.bytes()
        if client is None:
            return grpc.ssl_channel_credentials(trusted)
        chain = b"".join(blob.bytes() for blob in client.cert_chain_pems)
        return grpc.ssl_channel_credentials(trusted, client.private_key_pem.bytes(), chain)

    def ask(
        self, request: Any, client: trustme.LeafCert | None, authority: trustme.CA | None = None
    ) -> Any:
        """One call on a new connection."""
        with self.connection(client, authority) as channel:
            stub = RateLimitServiceStub(channel)
            return stub.ShouldRateLimit(request, timeout=CALL_TIMEOUT_S)

    def serve_with(self, certificate: trustme.LeafCert) -> None:
        """Put these files in the place of those that the door uses."""
        certificate.private_key_pem.write_to_path(str(self.key))
        chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
        self.certificate.write_bytes(chain)


@pytest.fixture(scope="module")
def proxy() -> trustme.CA:
    """The authority of the clients: not the one of the door."""
    return trustme.CA()


@pytest.fixture(scope="module")
def received() -> Received:
    """The spans that have come."""
    return Received()


@pytest.fixture(scope="module")
def collector(received: Received) -> Iterator[str]:
    with http_collector(received) as url:
        yield url


@pytest.fixture(scope="module")
def secured(
    start_tollgate: StartTollgate,
    proxy: trustme.CA,
    collector: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    client_ca = folder / "clients.pem"
    proxy.cert_pem.write_to_path(str(client_ca))
    rules = ConfigMap(folder / "rules" / "config")
    rules.publish({"mounted.yaml": rule_text(100)})
    settings = {
        "GRPC_UDS": str(folder / "door.sock"),
        "GRPC_SERVER_USE_TLS": "true",
        "GRPC_SERVER_TLS_CERT": str(folder / "door.pem"),
        "GRPC_SERVER_TLS_KEY": str(folder / "door.key"),
        "GRPC_CLIENT_TLS_CACERT": str(client_ca),
        "GRPC_CLIENT_TLS_SAN": PROXY,
        "RUNTIME_ROOT": str(folder / "rules"),
        "RUNTIME_WATCH_ROOT": "false",
        "RUNTIME_IGNOREDOTFILES": "true",
        "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED": "true",
        "ERROR_STATUS_CODES": "precise",
        "LIMIT_RESPONSE_HEADERS_ENABLED": "true",
        "DRAIN_GRACE": "1s",
        "TRACING_ENABLED": "true",
        # Only the calls that bring a trace along.
        "TRACING_SAMPLING_RATE": "0",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector,
    }
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.private_key_pem.write_to_path(settings["GRPC_SERVER_TLS_KEY"])
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    Path(settings["GRPC_SERVER_TLS_CERT"]).write_bytes(chain)
    with start_tollgate(settings) as tollgate:
        yield Secured(
            tollgate,
            f"unix:{settings['GRPC_UDS']}",
            authority,
            Path(settings["GRPC_SERVER_TLS_CERT"]),
            Path(settings["GRPC_SERVER_TLS_KEY"]),
            rules,
        )


@pytest.fixture
def client(proxy: trustme.CA) -> trustme.LeafCert:
    """A certificate that the door accepts."""
    return proxy.issue_cert(PROXY)


def test_a_known_client_is_answered(secured: Secured, client: trustme.LeafCert) -> None:
    answer = secured.ask(question("mounted", "user=known"), client)
    assert answer.overall_code == Code.OK
    assert answer.statuses[0].limit_remaining == 99
    headers = {header.key: header.value for header in answer.response_headers_to_add}
    assert list(headers) == ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]
    assert (headers["RateLimit-Limit"], headers["RateLimit-Remaining"]) == ("100", "99")
    assert int(headers["RateLimit-Reset"]) == answer.statuses[0].duration_until_reset.seconds


def test_strangers_are_refused(secured: Secured, client: trustme.LeafCert) -> None:
    request = question("mounted", "user=stranger")
    strangers = {
        "no certificate": (None, None),
        "a certificate of another authority": (trustme.CA().issue_cert(PROXY), None),
        "a client that does not trust the door": (client, trustme.CA()),
    }
    for who, (certificate, authority) in strangers.items():
        with pytest.raises(grpc.RpcError) as failure:
            secured.ask(request, certificate, authority)
        assert failure.value.code() is grpc.StatusCode.UNAVAILABLE, who
    # Not one of them was counted.
    assert secured.ask(request, client).statuses[0].limit_remaining == 99


def test_a_client_with_another_name_is_refused(secured: Secured, proxy: trustme.CA) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        secured.ask(question("mounted", "user=other"), proxy.issue_cert("other.internal"))
    assert failure.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert failure.value.details() == f"the client certificate does not carry the DNS name {PROXY}"


def test_the_client_command_speaks_tls(
    secured: Secured, client: trustme.LeafCert, tmp_path: Path
) -> None:
    files = {name: str(tmp_path / f"{name}.pem") for name in ("ca", "cert", "key")}
    secured.authority.cert_pem.write_to_path(files["ca"])
    client.cert_chain_pems[0].write_to_path(files["cert"])
    client.private_key_pem.write_to_path(files["key"])
    told = secured.tollgate.command(
        *("client", "-dial_string", secured.address),
        *("-domain", "mounted", "-descriptors", "user=command", "-grpc-use-tls"),
        *("-grpc-server-ca-file", files["ca"]),
        *("-grpc-cert-file", files["cert"], "-grpc-key-file", files["key"]),
    )
    assert told.returncode == 0, told.stderr
    assert "user=command: OK, limit 100/YEAR, remaining 99" in told.stdout


def test_errors_have_precise_codes(secured: Secured, client: trustme.LeafCert) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        secured.ask(question("mounted"), client)
    assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    answer = httpx.post(secured.tollgate.url("PORT", "/json"), json={"domain": "mounted"})
    assert answer.status_code == 400
    assert answer.json() == {
        "code": "INVALID_ARGUMENT",
        "message": "rate limit descriptor list must not be empty",
    }


def test_a_trace_goes_on_through_every_door(
    secured: Secured, client: trustme.LeafCert, received: Received
) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    parent = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
    with secured.connection(client) as channel:
        RateLimitServiceStub(channel).ShouldRateLimit(
            question("mounted", "user=traced"),
            timeout=CALL_TIMEOUT_S,
            metadata=tuple(parent.items()),
        )
    asked = {"domain": "mounted", "descriptors": [{"entries": [{"key": "user", "value": "json"}]}]}
    for door in ("PORT", "JSON_PORT"):
        answer = httpx.post(
            secured.tollgate.url(door, "/json"), json=asked, headers=parent, timeout=CALL_TIMEOUT_S
        )
        assert answer.status_code == 200
    decisions = received.wait_for("ShouldRateLimit Execution", 3)
    received.wait_for("Counters Execution", 3)
    received.wait_for("NewJsonHandler Remaining Execution", 2)
    assert {span.trace_id.hex() for span in received.spans} == {trace_id}
    assert len(received.spans) == 8
    assert {attributes(span)["domain"] for span in decisions} == {"mounted"}
    assert received.resources[0]["service.name"] == "RateLimit"


def decided_under(limit: int) -> Callable[[Call], bool]:
    return lambda call: call.limit == limit


def test_a_swapped_config_map_takes_over(secured: Secured, client: trustme.LeafCert) -> None:
    credentials = secured.credentials(client)
    with grpc_traffic(secured.address, "mounted", ["user=map"], credentials) as traffic:
        for limit in (100_000, 200_000, 100):
            secured.rules.publish({"mounted.yaml": rule_text(limit)})
            traffic.next_call(decided_under(limit), f"{limit} is in force")
    assert [call for call in traffic.calls if call.error] == []


def test_without_any_rules_it_is_unhealthy(secured: Secured, client: trustme.LeafCert) -> None:
    healthcheck = secured.tollgate.url("PORT", "/healthcheck")
    request = health_pb2.HealthCheckRequest(service="ratelimit")
    with secured.connection(client) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(request)
        assert next(watch).status == HEALTH_STATUS.SERVING
        secured.rules.publish({})
        assert next(watch).status == HEALTH_STATUS.NOT_SERVING
        assert httpx.get(healthcheck).status_code == 500
        assert secured.tollgate.command("status").returncode == 1
        secured.rules.publish({"mounted.yaml": rule_text(100)})
        assert next(watch).status == HEALTH_STATUS.SERVING
        assert httpx.get(healthcheck).status_code == 200


def test_a_new_certificate_is_served_to_new_connections(
    secured: Secured, client: trustme.LeafCert
) -> None:
    other = trustme.CA()
    with secured.connection(client) as channel:
        stub = RateLimitServiceStub(channel)
        request = question("mounted", "user=renewed")
        stub.ShouldRateLimit(request, timeout=CALL_TIMEOUT_S)
        secured.serve_with(other.issue_cert("localhost"))
        assert secured.ask(request, client, other).statuses[0].limit_remaining == 98
        stub.ShouldRateLimit(request, timeout=CALL_TIMEOUT_S)
    secured.serve_with(secured.authority.issue_cert("localhost"))
    assert secured.ask(request, client).statuses[0].limit_remaining == 96


def test_no_dashboard_listens_where_none_is_wanted(secured: Secured) -> None:
    assert "Ray dashboard" not in secured.tollgate.record["addresses"]
    assert "RAY_DASHBOARD_PORT" not in secured.tollgate.taken_ports()
