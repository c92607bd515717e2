"""Where a call came from: never where its caller says, unless he is a proxy that we trust."""

import pytest

from tollgate.serve.payments.api.call import (
    ADDRESS_LENGTH_MAX,
    AddressTrust,
    caller_address,
    read_headers,
)

RELAY, CALLER, FORGED = "127.0.0.1", "203.0.113.5", "198.51.100.1"
OURS = AddressTrust(frozenset({RELAY}))
BEHIND_A_PROXY = AddressTrust(frozenset({RELAY}), trusts_forwarded=True)


@pytest.mark.parametrize(
    ("trust", "client", "headers", "address"),
    [
        # Nobody is trusted.
        (AddressTrust(), CALLER, [], CALLER),
        (AddressTrust(), CALLER, [("x-forwarded-for", FORGED)], CALLER),
        (AddressTrust(), CALLER, [("x-tollgate-peer", FORGED)], CALLER),
        # Serve's own proxy, which adds its word behind the caller's.
        (OURS, RELAY, [("x-tollgate-peer", CALLER)], CALLER),
        (OURS, RELAY, [("x-tollgate-peer", FORGED), ("x-tollgate-peer", CALLER)], CALLER),
        (OURS, RELAY, [("x-forwarded-for", FORGED), ("x-tollgate-peer", CALLER)], CALLER),
        (OURS, RELAY, [("forwarded", f"for={FORGED}"), ("x-tollgate-peer", CALLER)], CALLER),
        (OURS, RELAY, [], RELAY),
        # Somebody who goes past it.
        (OURS, CALLER, [("x-tollgate-peer", FORGED)], CALLER),
        # A proxy of the operator's in front of it, which adds its word behind the caller's.
        (
            BEHIND_A_PROXY,
            RELAY,
            [("x-forwarded-for", f"{FORGED}, {CALLER}"), ("x-tollgate-peer", "192.0.2.1")],
            CALLER,
        ),
        (
            BEHIND_A_PROXY,
            RELAY,
            [("x-forwarded-for", FORGED), ("x-forwarded-for", CALLER)],
            CALLER,
        ),
        (BEHIND_A_PROXY, RELAY, [("x-tollgate-peer", "192.0.2.1")], "192.0.2.1"),
    ],
)
def test_an_address_is_believed_of_trusted_proxies_alone(
    trust: AddressTrust, client: str, headers: list[tuple[str, str]], address: str
) -> None:
    assert found(trust, client, headers) == address


def found(trust: AddressTrust, client: str, headers: list[tuple[str, str]]) -> str:
    scope = {
        "client": (client, 4711),
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }
    return caller_address(scope, read_headers(scope), trust)


def test_an_address_has_an_end() -> None:
    assert len(found(BEHIND_A_PROXY, RELAY, [("x-forwarded-for", "9" * 999)])) == ADDRESS_LENGTH_MAX


def test_a_socket_without_an_address_has_none() -> None:
    scope: dict[str, object] = {"client": None, "headers": []}
    assert caller_address(scope, read_headers(scope), OURS) == ""
