"""The claim of a node to the ports that its fronts share."""

import socket

import pytest

from tollgate.serve.node.ports import claimed_ports, free_port, port_conflicts
from tollgate.serve.settings import Settings


def settings_with(fronts: int, grpc_port: int, json_port: int) -> Settings:
    ports = {"GRPC_PORT": str(grpc_port), "JSON_PORT": str(json_port)}
    return Settings.from_environment({"GRPC_FRONTS": str(fronts), **ports})


def is_taken(port: int) -> bool:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return False
    except OSError:
        return True


def test_shared_ports_are_kept_for_the_fronts_of_one_node() -> None:
    ports = (free_port(), free_port())
    settings = settings_with(2, *ports)
    with claimed_ports(settings):
        assert all(map(is_taken, ports))
        for name in ("GRPC_PORT", "JSON_PORT"):
            assert [line for line in port_conflicts(settings) if line.startswith(f"{name}: ")]
        line = rf"JSON_PORT: cannot listen on 127.0.0.1:{ports[1]}: Address already in use; free it"
        with pytest.raises(OSError, match=line) as refused, claimed_ports(settings):
            pass
        assert str(refused.value.strerror).startswith("JSON_PORT: "), "the operator reads this"
    assert not any(map(is_taken, ports))


@pytest.mark.parametrize("is_wanted", [True, False])
def test_a_dashboard_needs_its_port_where_it_is_wanted(is_wanted: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        wanted = {"RAY_DASHBOARD_ENABLED": f"{is_wanted}".lower(), "RAY_DASHBOARD_PORT": str(port)}
        conflicts = list(port_conflicts(Settings.from_environment(wanted)))
    assert any(line.startswith("RAY_DASHBOARD_PORT: ") for line in conflicts) is is_wanted


def test_one_front_keeps_its_ports_for_its_successor() -> None:
    ports = (free_port(), free_port())
    with claimed_ports(settings_with(1, *ports)):
        assert all(map(is_taken, ports))


def test_ports_that_are_found_at_the_start_are_not_claimed() -> None:
    with claimed_ports(settings_with(1, 0, 0)):
        pass
