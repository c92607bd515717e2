"""A node whose rules come from a control plane: both show certificates, and it comes and goes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import trustme

from tests.e2e.callers import Call, grpc_traffic
from tests.e2e.conftest import StartTollgate
from tests.support.processes.tollgate import TollgateProcess
from tests.support.ratelimit.sent_rules import SentLimit, SentRule, limited, resource
from tests.support.servers.control_plane import ControlPlaneServer
from tests.support.waiting import until

SUBJECTS = ["version=a", "version=b"]
NAME = "plane.internal"


@dataclass(frozen=True, slots=True)
class Controlled:
    """A Tollgate, its control plane, and the authority of both."""

    tollgate: TollgateProcess
    server: ControlPlaneServer
    authority: trustme.CA

    def publish(self, version: str, limit: int) -> None:
        """Send one rule with this limit."""
        self.server.publish(version, resource("sent", "sent", limited("version", limit)))

    def source(self) -> dict[str, str]:
        """What the debug port tells of the rules' source, once the watcher has answered it."""
        url = self.tollgate.url("DEBUG_PORT", "/rlconfig/source")
        with httpx.Client(timeout=60) as client:
            answer = until(lambda: (a := client.get(url)).is_success and a, "the watcher answers")
        assert answer
        told: dict[str, str] = answer.json()
        return told

    def wait_for_absence(self, reason: str) -> None:
        """Until operators are told that it is away, and why. Rules are in force, so all is well."""
        until(lambda: reason in self.source()["away"], f"{reason} is told")
        begin = f"the rules in force stay: {self.server.target}: the control plane"

        def is_told() -> bool:
            told = self.tollgate.command("status")
            return told.returncode == 0 and begin in told.stdout and reason in told.stdout

        until(is_told, f"the status says {reason}")


@pytest.fixture
def controlled(start_tollgate: StartTollgate, tmp_path: Path) -> Iterator[Controlled]:
    authority = trustme.CA()
    ours = authority.issue_cert("tollgate.internal")
    files = {name: str(tmp_path / f"{name}.pem") for name in ("ca", "cert", "key")}
    authority.cert_pem.write_to_path(files["ca"])
    ours.cert_chain_pems[0].write_to_path(files["cert"])
    ours.private_key_pem.write_to_path(files["key"])
    with ControlPlaneServer(authority.issue_cert(NAME), authority) as server:
        settings = {
            "CONFIG_TYPE": "GRPC_XDS_SOTW",
            "CONFIG_GRPC_XDS_SERVER_URL": server.target,
            "CONFIG_GRPC_XDS_NODE_ID": "e2e",
            "CONFIG_GRPC_XDS_SERVER_USE_TLS": "true",
            "CONFIG_GRPC_XDS_SERVER_TLS_CACERT": files["ca"],
            "CONFIG_GRPC_XDS_SERVER_TLS_SAN": NAME,
            "CONFIG_GRPC_XDS_CLIENT_TLS_CERT": files["cert"],
            "CONFIG_GRPC_XDS_CLIENT_TLS_KEY": files["key"],
            "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL": "100ms",
            "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL": "100ms",
            "PAYMENTS_ENABLED": "false",
            "CATALOG_ENABLED": "false",
            "DRAIN_GRACE": "1s",
        }
        server.publish("1", resource("sent", "sent", limited("version", 1_000_000)))
        with start_tollgate(settings) as tollgate:
            yield Controlled(tollgate, server, authority)


def decided_under(limit: int) -> Callable[[Call], bool]:
    return lambda call: call.limit == limit


def test_rules_of_a_control_plane_that_comes_and_goes(controlled: Controlled) -> None:
    server, tollgate = controlled.server, controlled.tollgate
    with grpc_traffic(tollgate.grpc_address, "sent", SUBJECTS) as traffic:
        traffic.next_call(decided_under(1_000_000), "the first version decides")
        controlled.publish("2", 2_000_000)
        traffic.next_call(decided_under(2_000_000), "the second version is in force")
        assert server.streams[0].requests[0].node.id == "e2e"

        wrong = resource("sent", "sent", SentRule("version", limit=SentLimit(3)))
        text = "sent: invalid rate limit unit 'UNKNOWN'"
        assert server.answer_to(server.publish("3", wrong)).error_detail.message == text
        until(lambda: controlled.source()["error"] == text, "the refusal is told")
        until(lambda: text in tollgate.output(), "the refusal is in the node's log")
        assert controlled.source()["version"] == "2"

        server.stop()
        controlled.wait_for_absence("cannot be reached")
        until(lambda: "the rules in force stay: " in tollgate.output(), "the log tells it")
        # Somebody else listens there now.
        server.renew(trustme.CA().issue_cert(NAME))
        server.start()
        controlled.wait_for_absence("its certificate is of no CA that we trust")
        traffic.next_call(decided_under(2_000_000), "the last good rules decide")

        server.stop()
        server.renew(controlled.authority.issue_cert(NAME))
        controlled.publish("4", 4_000_000)
        server.start()
        traffic.next_call(decided_under(4_000_000), "the control plane is heard again")
    assert [call for call in traffic.calls if call.error] == []
    for subject in SUBJECTS:
        calls = [call for call in traffic.calls if call.about == subject]
        limits = [call.limit for call in calls]
        assert sorted(set(limits)) == [1_000_000, 2_000_000, 4_000_000]
        assert limits == sorted(limits), "no version comes back"
        # Counters go on through a change of rules: every call is one more hit.
        assert [call.limit - call.remaining for call in calls] == list(range(1, len(calls) + 1))
    source = controlled.source()
    assert (source["source"], source["version"]) == (f"control plane {server.target}", "4")
    assert (source["error"], source["away"]) == ("", "")
