"""`tollgate up` with something wrong: one clear line, exit status 1, and nothing was started."""

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from tests.support.processes.forked_command import run_forked
from tests.support.processes.tollgate import TollgateProcess

Settings = dict[str, str]


def broken_rules(folder: Path) -> Settings:
    rules = folder / "rules" / "config"
    rules.mkdir(parents=True)
    rule = "  - {key: k, rate_limit: {unit: fortnight, requests_per_unit: 1}}\n"
    (rules / "shop.yaml").write_text(f"domain: shop\ndescriptors:\n{rule}")
    return {"RUNTIME_ROOT": str(rules.parent), "RUNTIME_WATCH_ROOT": "false"}


def no_rules(folder: Path) -> Settings:
    return {"RUNTIME_ROOT": str(folder / "absent"), "RUNTIME_WATCH_ROOT": "false"}


def unreadable_certificate(folder: Path) -> Settings:
    return {
        "GRPC_SERVER_USE_TLS": "true",
        "GRPC_SERVER_TLS_CERT": str(folder / "absent.pem"),
        "GRPC_SERVER_TLS_KEY": str(folder / "absent.key"),
    }


def key_of_another_certificate(folder: Path) -> Settings:
    authority = trustme.CA()
    certificate, key = folder / "door.pem", folder / "door.key"
    authority.issue_cert("localhost").cert_chain_pems[0].write_to_path(str(certificate))
    authority.issue_cert("localhost").private_key_pem.write_to_path(str(key))
    return {
        "GRPC_SERVER_USE_TLS": "true",
        "GRPC_SERVER_TLS_CERT": str(certificate),
        "GRPC_SERVER_TLS_KEY": str(key),
    }


def socket_in_an_absent_folder(folder: Path) -> Settings:
    return {"GRPC_UDS": str(folder / "absent" / "door.sock")}


def socket_in_the_place_of_a_file(folder: Path) -> Settings:
    (folder / "file").touch()
    return {"GRPC_UDS": str(folder / "file")}


def of(**settings: str) -> Callable[[Path], Settings]:
    return lambda _: settings


REFUSALS: dict[str, tuple[Callable[[Path], Settings], str]] = {
    "bad setting": (of(COUNTER_PARTITIONS="two"), r"COUNTER_PARTITIONS: .*'two'.*"),
    "settings that contradict": (
        of(GRPC_CLIENT_TLS_CACERT="ca.pem"),
        r"GRPC_SERVER_USE_TLS: is not set, but GRPC_CLIENT_TLS_CACERT needs it",
    ),
    "sentinels that are not named": (
        of(REDIS_URL="main", REDIS_TYPE="SENTINEL"),
        r"REDIS_URL: 'main' does not name a master and its sentinels: write MASTER,HOST:PORT.*",
    ),
    "no certificate for Redis": (
        of(REDIS_URL="rediss://127.0.0.1:1", REDIS_TLS_CACERT="/absent.pem"),
        r"REDIS_TLS: a certificate or a key cannot be used, of /absent\.pem: .*No such file.*",
    ),
    "no certificate for a second place in Redis": (
        of(
            BACKEND_TYPE="actors",
            COUNTING_SHADOW="redis",
            REDIS_URL="127.0.0.1:1",
            REDIS_TLS="true",
            REDIS_TLS_CACERT="/absent.pem",
        ),
        r"REDIS_TLS: a certificate or a key cannot be used, of /absent\.pem: .*No such file.*",
    ),
    "no certificate for a second place in Memcached": (
        of(
            COUNTING_SHADOW="memcache",
            MEMCACHE_HOST_PORT="127.0.0.1:1",
            MEMCACHE_TLS="true",
            MEMCACHE_TLS_CACERT="/absent.pem",
        ),
        r"MEMCACHE_TLS: a certificate or a key cannot be used, of /absent\.pem: .*No such file.*",
    ),
    "no certificate for Memcached": (
        of(
            BACKEND_TYPE="memcache",
            MEMCACHE_HOST_PORT="127.0.0.1:1",
            MEMCACHE_TLS="true",
            MEMCACHE_TLS_CACERT="/absent.pem",
        ),
        r"MEMCACHE_TLS: a certificate or a key cannot be used, of /absent\.pem: .*No such file.*",
    ),
    "unreadable certificate for the control plane": (
        of(
            CONFIG_TYPE="GRPC_XDS_SOTW",
            CONFIG_GRPC_XDS_SERVER_USE_TLS="true",
            CONFIG_GRPC_XDS_SERVER_TLS_CACERT="/absent.pem",
        ),
        r"CONFIG_GRPC_XDS_SERVER_USE_TLS: /absent\.pem cannot be read: No such file or directory",
    ),
    "broken rule file": (
        broken_rules,
        r"shop\.yaml:3: invalid rate limit unit 'fortnight'; mend it, or set "
        r"FORCE_START_WITHOUT_INITIAL_CONFIG=true to start without rules",
    ),
    "no rule folder": (no_rules, r".*/absent/config: cannot be read: No such file or directory;.*"),
    "unreadable certificate": (
        unreadable_certificate,
        r"GRPC_SERVER_USE_TLS: .*/absent\.(pem|key) cannot be read: No such file or directory",
    ),
    "key of another certificate": (
        key_of_another_certificate,
        r"GRPC_SERVER_USE_TLS: .*/door\.pem and .*/door\.key are not a PEM certificate chain .*",
    ),
    "socket in an absent folder": (
        socket_in_an_absent_folder,
        r"GRPC_UDS: cannot listen on .*/door\.sock: No such file or directory; set another path",
    ),
    "socket in the place of a file": (
        socket_in_the_place_of_a_file,
        r"GRPC_UDS: cannot listen on .*/file: there is another file of this name; .*",
    ),
    "unknown rule of catalogs": (
        of(CATALOG_RULES="R99=off"),
        r"CATALOG_RULES: there is no rule 'R99'",
    ),
    "no tables of payments": (
        of(PAYMENTS_CONFIG="/absent"),
        r"PAYMENTS_CONFIG: /absent/currencies\.yaml: cannot be read: No such file or directory",
    ),
    "address of no machine": (
        of(HOST="localhost:8080"),
        r"HOST: cannot listen on 'localhost:8080': .*; name an address of this machine",
    ),
    "address of another machine": (
        of(GRPC_HOST="192.0.2.1"),
        r"GRPC_HOST: cannot listen on '192\.0\.2\.1': .*; name an address of this machine",
    ),
    "no name of a data folder": (of(TOLLGATE_DATA=""), r"TOLLGATE_DATA: '' is not the name .*"),
    "no file of what is signed": (
        of(CATALOG_SIGNING="/absent/signing.yaml"),
        r"CATALOG_SIGNING: /absent/signing\.yaml: No such file or directory",
    ),
}


def refused_lines(tollgate: TollgateProcess) -> list[str]:
    """What `tollgate up` says when it refuses."""
    done = run_forked(("up", "--detach"), tollgate.environment, tollgate.data.parent)
    assert done.returncode == 1
    assert done.stdout == ""
    assert tollgate.record == {}
    return done.stderr.splitlines()


@pytest.mark.parametrize(("settings", "line"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_start_is_refused_in_one_line(
    tmp_path: Path, settings: Callable[[Path], Settings], line: str
) -> None:
    tollgate = TollgateProcess(tmp_path, settings(tmp_path))
    lines = refused_lines(tollgate)
    assert len(lines) == 1, lines
    assert re.fullmatch(f"tollgate: {line}", lines[0])
    assert not tollgate.data.exists()


def test_a_data_folder_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    tollgate = TollgateProcess(tmp_path, {"TOLLGATE_DATA": "/proc/absent"})
    done = tollgate.command("up", "--detach")
    assert done.returncode == 1
    assert done.stderr == (
        "tollgate: TOLLGATE_DATA: /proc/absent: No such file or directory: set a folder that can "
        "be written to\n"
    )


def test_a_taken_port_is_named_with_its_setting(tmp_path: Path) -> None:
    tollgate = TollgateProcess(tmp_path, {})
    port = tollgate.ports["GRPC_PORT"]
    with socket.create_server(("127.0.0.1", port)):
        lines = refused_lines(tollgate)
    assert lines == [
        f"tollgate: GRPC_PORT: cannot listen on 127.0.0.1:{port}: Address already in use; free it, "
        "or set another"
    ]


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    settings = {
        **broken_rules(tmp_path),
        "USE_PROMETHEUS": "true",
        "PROMETHEUS_MAPPER_YAML": "/absent/map.yaml",
        "GRPC_UDS": "/absent/door.sock",
    }
    lines = refused_lines(TollgateProcess(tmp_path, settings))
    assert [line.split()[1] for line in lines] == [
        "shop.yaml:3:",
        "PROMETHEUS_MAPPER_YAML:",
        "GRPC_UDS:",
    ]


def test_a_socket_that_somebody_listens_on_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "door.sock")
    tollgate = TollgateProcess(tmp_path, {"GRPC_UDS": path})
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        assert refused_lines(tollgate) == [
            f"tollgate: GRPC_UDS: cannot listen on {path}: somebody is listening there; "
            "set another path"
        ]


def test_a_misspelt_setting_is_warned_of(tmp_path: Path) -> None:
    settings = {"GRPC_PROT": "1", "GRPC_UDS": "/absent/door.sock"}
    lines = refused_lines(TollgateProcess(tmp_path, settings))
    assert lines[0] == (
        "tollgate: warning: GRPC_PROT: is not a setting and has no effect; meant GRPC_PORT?"
    )
