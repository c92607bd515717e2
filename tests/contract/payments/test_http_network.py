"""The HTTP adapter of card networks, against the reference gateway and its faults (I5)."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.payments.api import GOOD_CARD, REFERENCE, App, PaymentsApi, done
from tests.support.payments.card_gateway import CardGateway
from tests.support.payments.enquiries import enquire, worker
from tests.support.servers.card_gateway import SECRET, Fault, GatewayServer, running_gateway
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ledger.law.commands import Conclude, Order
from tollgate.actors.ledger.law.outcomes import OrderOutcome
from tollgate.actors.ledger.law.values import (
    BookId,
    Currency,
    EntityId,
    NetworkAction,
    NetworkApproved,
    NetworkDeclined,
)
from tollgate.serve.payments.api.orders import DEADLINE_S
from tollgate.serve.payments.network import http_network
from tollgate.serve.payments.network.card import PlainCard, read_card
from tollgate.serve.payments.network.card_network import (
    Authorisation,
    CardNetworks,
    Charge,
    NetworkOperation,
    PaymentRefused,
    Unknown,
)
from tollgate.serve.payments.network.circuit import PAUSE_S, SILENCES_MAX
from tollgate.serve.payments.network.enquiries import WHY
from tollgate.serve.payments.network.http_network import Gateway, HttpNetwork
from tollgate.serve.payments.network.networks_file import load_networks
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour
from tollgate.serve.payments.network.simulator import SimulatedNetwork
from tollgate.serve.payments.reference.data_file import DataFileError

OPERATION = NetworkOperation(
    id=EntityId("6b024b2e" + "0" * 15 + "1"),
    action=NetworkAction.CAPTURE,
    book=BookId("6b024b2e" + "0" * 16),
    currency=Currency("EUR"),
    exponent=2,
    amount=500,
    follows="ref-1",
    descriptor="Coffee",
    card_token="",
    is_test=False,
    at_ms=0,
)
APPROVED = NetworkApproved(f"ref-{OPERATION.id}")
SILENT = [each for each in Fault if each is not Fault.UNKNOWN]


@pytest.fixture
def server() -> Iterator[GatewayServer]:
    with running_gateway(CardGateway(refused_amounts=frozenset({808}))) as running:
        yield running


def gateway_at(server: GatewayServer) -> Gateway:
    return Gateway("acquirer", server.url, (SECRET,), 400, allows_http=True)


def asked(server: GatewayServer, *calls: Callable[[HttpNetwork], Awaitable[Any]]) -> list[Any]:
    """What a network answers, one call after another."""

    async def scenario() -> list[Any]:
        network = HttpNetwork(gateway_at(server), REFERENCE.errors, SystemClock())
        try:
            return [await call(network) for call in calls]
        finally:
            await network.close()

    return asyncio.run(scenario())


def plain(number: str = "4100000000000001") -> PlainCard:
    card = read_card(number, 8, 2066, "123")
    assert isinstance(card, PlainCard)
    return card


def test_a_move_is_told_as_the_contract_has_it(server: GatewayServer) -> None:
    (answer,) = asked(server, lambda network: network.carry_out(OPERATION))
    assert answer == APPROVED
    assert server.unsigned == 0
    assert json.loads(server.bodies[0]) == {
        "version": 1,
        "operation": {
            "id": OPERATION.id,
            "action": "capture",
            "merchant": OPERATION.book,
            "amount": {"currency": "EUR", "exponent": 2, "value": 500},
            "follows": "ref-1",
            "descriptor": "Coffee",
            "created": "1970-01-01T00:00:00.000Z",
        },
    }


def test_a_holder_s_card_goes_with_its_authorisation_alone(server: GatewayServer) -> None:
    operation = replace(OPERATION, action=NetworkAction.AUTHORISE, follows="")
    again = replace(operation, id=EntityId("f" * 24), card_token="token-7")
    first, second, told = asked(
        server,
        lambda network: network.carry_out(operation, plain()),
        lambda network: network.carry_out(again),
        lambda network: network.enquire(operation),
    )
    assert first == told == NetworkApproved(f"ref-{operation.id}", "token-of-the-network")
    assert second.card_token == "token-7"
    bodies = [json.loads(body)["operation"] for body in server.bodies]
    assert bodies[0]["card"] == {
        "number": "4100000000000001",
        "expiry": {"month": 8, "year": 2066},
        "code": "123",
    }
    assert bodies[1]["cardToken"] == "token-7"
    assert not {"card", "cardToken"} & bodies[2].keys()


def test_a_refusal_has_a_reason_of_the_table(server: GatewayServer) -> None:
    (answer,) = asked(server, lambda network: network.carry_out(replace(OPERATION, amount=808)))
    assert answer == NetworkDeclined(REFERENCE.errors.error(8))


@pytest.mark.parametrize("fault", SILENT, ids=lambda fault: fault.name)
def test_what_is_no_answer_is_unknown_and_an_enquiry_tells(
    server: GatewayServer, fault: Fault
) -> None:
    server.faults.append(fault)
    first, told = asked(
        server,
        lambda network: network.carry_out(OPERATION),
        lambda network: network.enquire(OPERATION),
    )
    assert isinstance(first, Unknown)
    was_done = len(server.gateway.done)
    assert told == (APPROVED if was_done else NetworkDeclined(REFERENCE.errors.error(12)))
    assert was_done == (fault not in (Fault.ERROR_BEFORE, Fault.CUT_BEFORE, Fault.NEVER))


def test_a_network_may_not_know_itself(server: GatewayServer) -> None:
    server.faults.append(Fault.UNKNOWN)
    (answer,) = asked(server, lambda network: network.enquire(OPERATION))
    assert isinstance(answer, Unknown)


def test_what_was_enquired_before_it_came_is_never_done(server: GatewayServer) -> None:
    told, late = asked(
        server,
        lambda network: network.enquire(OPERATION),
        lambda network: network.carry_out(OPERATION),
    )
    assert told == late == NetworkDeclined(REFERENCE.errors.error(12))
    assert server.gateway.done == []


def test_a_secret_that_is_not_the_gateway_s_is_no_answer(server: GatewayServer) -> None:
    server.secret = "another-secret-of-32-characters-more"
    (answer,) = asked(server, lambda network: network.carry_out(OPERATION))
    assert isinstance(answer, Unknown)
    assert server.unsigned == 1
    assert server.gateway.done == []


def test_a_network_that_is_silent_is_left_alone_for_a_while(server: GatewayServer) -> None:
    clock = ManualClock(1_000.0)
    server.faults.extend([Fault.ERROR_BEFORE] * (SILENCES_MAX + 1))

    async def scenario() -> None:
        network = HttpNetwork(gateway_at(server), REFERENCE.errors, clock)
        server.secret = SECRET
        for _ in range(SILENCES_MAX):
            assert isinstance(await network.enquire(OPERATION), Unknown)
        calls = len(server.bodies)
        refused = await network.carry_out(OPERATION)
        assert refused == NetworkDeclined(REFERENCE.errors.error(12))
        assert isinstance(await network.enquire(OPERATION), Unknown)
        assert len(server.bodies) == calls
        clock.advance(PAUSE_S)
        assert isinstance(await network.enquire(OPERATION), Unknown)
        assert len(server.bodies) == calls + 1
        assert isinstance(await network.enquire(OPERATION), Unknown)
        assert len(server.bodies) == calls + 1
        await network.close()

    asyncio.run(scenario())


def test_a_live_card_is_of_a_scheme_and_plays_no_part(server: GatewayServer) -> None:
    charge = Charge(Currency("EUR"), 2, 500, 0)
    good, other, played = asked(
        server,
        lambda network: network.authorise(plain(), charge, CardBehaviour()),
        lambda network: network.authorise(plain("377777777777777"), charge, CardBehaviour()),
        lambda network: network.authorise(plain(), charge, replace(CardBehaviour(), limit=None)),
    )
    assert isinstance(good, Authorisation)
    assert (good.card.bin, good.card.last4, good.error) == ("410000", "0001", None)
    assert isinstance(other, PaymentRefused)
    assert played == good
    assert server.bodies == []


# A live merchant, from the call to the gateway


@pytest.fixture
def live(api: PaymentsApi, shop: App, server: GatewayServer) -> Iterator[dict[str, Any]]:
    """A live merchant whose payments go to the gateway."""
    api.clock.set(SystemClock().now_s())
    network = HttpNetwork(gateway_at(server), REFERENCE.errors, api.clock)
    simulated = SimulatedNetwork(REFERENCE.errors, api.clock)
    api.use_networks(CardNetworks(simulated, network))
    merchant = api.new_merchant(shop, test=False)
    api.approve(merchant)
    yield merchant
    api.runner.run(network.close())


def pay(api: PaymentsApi, merchant: dict[str, Any], key: str = "", amount: int = 900) -> Any:
    body = {"key": merchant["key"], "currency": "DKK", "amount": amount}
    body["card"] = GOOD_CARD | {"number": "4100000000000001"}
    headers = {"idempotency-key": key} if key else {}
    return api.call("POST", "/transactions", json=body, headers=headers)


def test_a_live_payment_from_card_to_refund(
    api: PaymentsApi, shop: App, live: dict[str, Any], server: GatewayServer
) -> None:
    paid = done(pay(api, live))["transaction"]["id"]
    for what, amount in (("captures", 500), ("refunds", 100), ("voids", 400)):
        api.act(shop, paid, what, amount=amount)
    found = api.transaction(shop, paid)
    assert (found["capturedAmount"], found["refundedAmount"], found["voidedAmount"]) == (
        *(500, 100, 400),
    )
    assert [(action, amount) for _, action, amount in server.gateway.done] == [
        *(("authorise", 900), ("capture", 500), ("refund", 100), ("void", 400)),
    ]
    follows = [json.loads(body)["operation"]["follows"] for body in server.bodies]
    assert follows == ["", *[f"ref-{server.gateway.done[0][0]}"] * 3]
    body = {"transactionId": paid, "currency": "DKK", "amount": 100}
    again = done(api.call("POST", f"/merchants/{live['id']}/transactions", shop, json=body))
    assert json.loads(server.bodies[-1])["operation"]["cardToken"] == "token-of-the-network"
    assert api.transaction(shop, again["transaction"]["id"])["recurring"] is True


def test_a_cut_connection_places_no_second_hold(
    api: PaymentsApi, shop: App, live: dict[str, Any], server: GatewayServer
) -> None:
    server.faults.append(Fault.CUT_AFTER)
    for _ in range(3):
        assert pay(api, live, "order-1").status_code == 503
    enquire(api, 20)
    paid = done(pay(api, live, "order-1"))["transaction"]["id"]
    assert server.gateway.holds("authorise") == [900]
    assert api.transaction(shop, paid)["pendingAmount"] == 900
    assert [what for what, _ in server.gateway.asked] == ["operations", "enquiries"]


def test_a_hold_that_nobody_can_ask_for_is_reversed(
    api: PaymentsApi, shop: App, live: dict[str, Any], server: GatewayServer
) -> None:
    server.faults.append(Fault.CUT_AFTER)
    assert pay(api, live).status_code == 503
    enquire(api, 20)
    assert server.gateway.holds("authorise") == []
    (found,) = api.listed(f"/merchants/{live['id']}/transactions", shop)
    assert found["successful"] is False


def test_a_hold_whose_caller_is_being_told_of_it_is_not_reversed(
    api: PaymentsApi,
    live: dict[str, Any],
    server: GatewayServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The books take as long as they may to make the answer durable, and a worker looks then."""
    execute, reversed_, told = api.ledger.execute, asyncio.Event(), asyncio.Event()

    async def slowly(orders: Sequence[Order]) -> list[OrderOutcome]:
        (order,) = orders
        if not isinstance(order.command, Conclude):
            return await execute(orders)
        if order.origin.request_id == WHY:
            reversed_.set()
            await told.wait()
            return await execute(orders)
        api.clock.advance(DEADLINE_S - 1)
        looking = asyncio.create_task(worker(api).look())
        waiting = asyncio.create_task(reversed_.wait())
        await asyncio.wait((looking, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        outcome = await execute(orders)
        told.set()
        await looking
        return outcome

    monkeypatch.setattr(api.ledger, "execute", slowly)
    done(pay(api, live))
    assert server.gateway.holds("authorise") == [900]


def test_a_move_that_finds_no_place_is_not_sent(
    server: GatewayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_network, "CALLS_MAX", 1)
    monkeypatch.setattr(http_network, "PLACE_WAIT_S", 0.0)
    other = replace(OPERATION, id=EntityId("6b024b2e" + "0" * 15 + "2"))

    async def scenario() -> list[object]:
        network = HttpNetwork(gateway_at(server), REFERENCE.errors, SystemClock())
        try:
            return await asyncio.gather(
                network.carry_out(OPERATION), network.carry_out(other), network.enquire(other)
            )
        finally:
            await network.close()

    sent, refused, unknown = asyncio.run(scenario())
    assert sent == APPROVED
    assert isinstance(refused, NetworkDeclined)
    assert isinstance(unknown, Unknown)
    assert [json.loads(body)["operation"]["id"] for body in server.bodies] == [OPERATION.id]


# The file


def written(folder: Path, **changes: object) -> Path:
    (folder / "secret").write_text(f"{SECRET}\n")
    (folder / "secret").chmod(0o600)
    network = {"url": "https://gateway.example.com/t/", "secret_file": str(folder / "secret")}
    whole = {"version": 1, "live": "acquirer", "networks": {"acquirer": network | changes}}
    file = folder / "networks.yaml"
    file.write_text(json.dumps(whole))
    return file


def test_the_file_of_networks(tmp_path: Path) -> None:
    found = load_networks(written(tmp_path))
    (gateway,) = found.gateways
    assert (found.live, gateway.name, gateway.url) == (
        *("acquirer", "acquirer", "https://gateway.example.com/t"),
    )
    assert (gateway.secrets, gateway.timeout_ms) == ((SECRET,), 8_000)
    assert SECRET not in repr(gateway)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": "http://gateway.example.com"}, "must be an https address"),
        ({"timeout_ms": 60_000}, "is not between 100 and 9000"),
        ({"secret_file": "/nowhere"}, "no secret of the network"),
        ({"secret_files": ["/a", "/b"]}, "needs a secret_file, or"),
        ({"key_file": "/k"}, "go together"),
        ({"ca_file": "/nowhere"}, "the files of TLS cannot be used"),
        ({"colour": "red"}, "is unknown"),
    ],
)
def test_a_file_that_is_wrong_says_where(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    with pytest.raises(DataFileError, match=said) as refused:
        load_networks(written(tmp_path, **changes))
    assert str(refused.value).startswith(f"{tmp_path}/networks.yaml:")
