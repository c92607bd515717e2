"""The payments API in process: real tables in SQLite, a real shard without Ray, a clock that stands
still unless it is moved. What a test sees of a reply is what was put on the wire.
"""

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from tests.support.manual_clock import ManualClock
from tollgate.actors.ledger.delivery.batches import CallResult
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import OrderOutcome
from tollgate.actors.ledger.shard.pipeline import Shard
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.deliveries.store import SqlDeliveryStore
from tollgate.actors.ledger.storage.migration import open_database
from tollgate.actors.ledger.storage.reading.reader import SqlReadStore
from tollgate.actors.ledger.storage.single_uses import SqlSingleUses
from tollgate.actors.ledger.storage.writer import SqlJournalStore
from tollgate.actors.ratelimit.rules.descriptors import Entries
from tollgate.serve.payments.api.access import Authentication
from tollgate.serve.payments.api.application import payments_application
from tollgate.serve.payments.api.asgi import Dispatcher, OperatorKey
from tollgate.serve.payments.api.context import ApiContext, TradePolicy
from tollgate.serve.payments.api.entity_cache import EntityCache
from tollgate.serve.payments.api.limits.calls import CallLimits
from tollgate.serve.payments.api.limits.waiting_merchants import WaitingMerchants
from tollgate.serve.payments.api.orders import CommandGateway
from tollgate.serve.payments.checkout.parts import checkout_parts
from tollgate.serve.payments.mail.mailer import Invitation
from tollgate.serve.payments.network.card_network import CardNetworks
from tollgate.serve.payments.network.conclusions import Conclusions
from tollgate.serve.payments.network.simulator import SimulatedNetwork
from tollgate.serve.payments.reference.tables import ReferenceData, load_reference
from tollgate.serve.payments.secrets.generator import SecretGenerator
from tollgate.serve.payments.secrets.key_uses import KeyUses
from tollgate.serve.payments.secrets.keys import KeyDigests
from tollgate.serve.payments.secrets.master_secret import MasterSecret
from tollgate.serve.payments.secrets.vault_keys import open_vault_keys
from tollgate.serve.payments.webhooks.caller import WebhookCaller
from tollgate.serve.payments.webhooks.calls import WebhookTargets
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer

TABLES = Path(__file__).parents[3] / "configs" / "payments"
RATES_AGE_MAX_MS = 7 * 86_400_000
NOW_S = 1_767_225_600  # 2026-01-01T00:00:00Z
OPERATOR_KEY = "operator-key-of-the-tests"
GOOD_CARD = {"number": "4100000000000000", "expiry": {"month": 8, "year": 2066}, "code": "123"}
MERCHANT = {
    "company": {"country": "DK"},
    "currency": "DKK",
    "email": "shop@example.com",
    "website": "https://example.com",
    "descriptor": "Coffee & Cake",
    "test": True,
}
REFERENCE = load_reference(TABLES)
ABSENT = "f" * 24


@dataclass(frozen=True, slots=True)
class App:
    """An app of a test. `key`: as it was shown."""

    id: str
    key: str


@dataclass
class RecordedLedger:
    """The shard, and every order that went to it. `instead`: answers that are given in its place.
    `held`: orders wait until there are so many of them, so that they meet."""

    shard: Shard
    orders: list[Order] = field(default_factory=list)
    instead: list[OrderOutcome] = field(default_factory=list)
    held: int = 0

    def __post_init__(self) -> None:
        self._met = asyncio.Event()

    async def execute(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        self.orders += orders
        if self.instead:
            return [self.instead.pop(0) for _ in orders]
        if self.held:
            self.held -= len(orders)
            if self.held:
                await self._met.wait()
            self._met.set()
        return await self.shard.execute(orders)


@dataclass
class RecordedInvitations:
    sent: list[Invitation] = field(default_factory=list)

    def send(self, invitation: Invitation) -> None:
        self.sent.append(invitation)


class KeyUsesInMemory:
    def __init__(self) -> None:
        self.uses: dict[str, int] = {}

    async def note(self, uses: Mapping[str, int]) -> None:
        self.uses |= uses

    async def last_used(self, digests: Iterable[str]) -> dict[str, int]:
        return {digest: self.uses[digest] for digest in digests if digest in self.uses}


@dataclass
class RecordedReceivers:
    """All receivers there are. `answers`: their results in turn; then all take what they get, but
    those at `/broken`."""

    answers: list[CallResult] = field(default_factory=list)
    taken: list[tuple[str, bytes, dict[str, str]]] = field(default_factory=list)

    async def send(
        self, url: str, body: bytes, headers: dict[str, str], *, is_test: bool
    ) -> CallResult:
        self.taken.append((url, body, headers))
        if self.answers:
            return self.answers.pop(0)
        is_broken = url.endswith("/broken")
        return CallResult(500, "HTTP status 500") if is_broken else CallResult(200)


def _folder_of(url: str) -> Path:
    """Where a ledger is that tests started: that of its file, or of its server's socket."""
    if url.startswith("sqlite:///"):
        return Path(url.removeprefix("sqlite:///")).parent
    return Path(url.partition("?host=")[2])


class NoCallLimits:
    """CallLimits that let every call go on."""

    async def admit(self, *wanted: Entries) -> None:
        del wanted


class PaymentsApi:
    """Calls go in by `call` and its shorthands, one after another or, with `together`, at once."""

    def __init__(
        self, url: str, limits: CallLimits | None = None, prefix: str = "/payments"
    ) -> None:
        self.clock = ManualClock(NOW_S)
        self.runner = asyncio.Runner()
        self.prefix = prefix
        self.trade = TradePolicy(approves_live=False, rates_age_max_ms=RATES_AGE_MAX_MS)
        self.networks: CardNetworks | None = None
        self.invitations = RecordedInvitations()
        self.receivers = RecordedReceivers()
        self.address = "192.0.2.7"
        self.limits = limits or NoCallLimits()
        self.secret = MasterSecret(b"0123456789abcdef0123456789abcdef")
        self.vault_keys = open_vault_keys(_folder_of(url) / "vault-keys")
        self.runner.run(self._open(url))

    async def _open(self, url: str) -> None:
        self.database: Database = await open_database(url)
        store = SqlJournalStore(self.database)
        await store.take_over("ledger", "test")
        self.journal = store
        self.ended: list[BaseException] = []
        self.ledger = RecordedLedger(Shard(store, self.clock, self.ended.append))
        self.context = self._context()
        self.app = payments_application(Dispatcher(self.context), "0.0")
        self.client = self.client_of(self.app)
        stored = self.context.digests.stored(OPERATOR_KEY)
        self.operator_key = OperatorKey(stored.digest, stored.last4)

    @cached_property
    def operator_client(self) -> httpx.AsyncClient:
        """Of the operator's calls, which most tests make none of."""
        app = payments_application(Dispatcher(self.context, self.operator_key), "0.0")
        return self.client_of(app)

    def use_trade(self, trade: TradePolicy) -> None:
        """Other terms of the operator from now on, as after a restart."""
        self.trade = trade
        self.context = self._context()
        self.client = self.client_of(payments_application(Dispatcher(self.context), "0.0"))

    def use_networks(self, networks: CardNetworks) -> None:
        """Other card networks from now on, as after a restart."""
        self.networks = networks
        self.context = self._context()
        self.client = self.client_of(payments_application(Dispatcher(self.context), "0.0"))

    def another_process(self, reference: ReferenceData = REFERENCE) -> httpx.AsyncClient:
        """A client of a process that has heard of nothing yet, before the same books."""
        return self.client_of(payments_application(Dispatcher(self._context(reference)), "0.0"))

    def _context(self, reference: ReferenceData = REFERENCE) -> ApiContext:
        store = SqlReadStore(self.database)
        digests, generator = KeyDigests(self.secret), SecretGenerator(self.secret)
        sealer = WebhookSecretSealer(self.secret)
        uses = KeyUses(KeyUsesInMemory(), self.clock)
        return ApiContext(
            store=store,
            entities=EntityCache(store),
            authentication=Authentication(store, digests, uses, self.clock),
            commands=CommandGateway(self.ledger, generator, reference.errors, self.clock),
            limits=self.limits,
            reference=reference,
            networks=self.networks or CardNetworks(SimulatedNetwork(reference.errors, self.clock)),
            checkout=checkout_parts(
                self.secret, self.vault_keys, SqlSingleUses(self.database), self.clock
            ),
            conclusions=Conclusions(self.ledger, generator),
            secrets=generator,
            digests=digests,
            key_uses=uses,
            invitations=self.invitations,
            deliveries=SqlDeliveryStore(self.database),
            secret_sealer=sealer,
            webhook_caller=WebhookCaller(self.receivers, sealer, self.clock),
            targets=WebhookTargets(),
            trade=self.trade,
            waiting=WaitingMerchants(store, self.clock),
            clock=self.clock,
        )

    def client_of(self, app: Any) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(
            app, raise_app_exceptions=False, root_path=self.prefix, client=(self.address, 4711)
        )
        return httpx.AsyncClient(transport=transport, base_url=f"http://test{self.prefix}")

    def close(self) -> None:
        self.runner.run(self._close())
        self.runner.close()

    async def _close(self) -> None:
        await self.client.aclose()
        if "operator_client" in vars(self):
            await self.operator_client.aclose()
        await self.journal.close()
        await self.database.close()

    def call(self, method: str, path: str, app: App | str | None = None, **options: Any) -> Any:
        """The response. `app`: whose key is presented, or the key itself."""
        return self.runner.run(self.request(method, path, app, **options))

    async def request(
        self,
        method: str,
        path: str,
        app: App | str | None = None,
        client: httpx.AsyncClient | None = None,
        **options: Any,
    ) -> httpx.Response:
        headers = {"accept": "application/json", **options.pop("headers", {})}
        if app is not None:
            headers["authorization"] = basic(app if isinstance(app, str) else app.key)
        url = f"http://test{self.prefix}{path}"
        client = client or self.client_for(path)
        return await client.request(method, url, headers=headers, **options)

    def client_for(self, path: str) -> httpx.AsyncClient:
        """Of the door that a path belongs to."""
        return self.operator_client if path.startswith("/operator") else self.client

    def together(self, *calls: tuple[Any, ...], **options: Any) -> list[httpx.Response]:
        """The responses of (method, path, app, json) calls that are under way at the same time."""

        async def all_of_them() -> list[httpx.Response]:
            return await asyncio.gather(
                *(
                    self.request(method, path, app, json=body, **options)
                    for method, path, app, body in calls
                )
            )

        return self.runner.run(all_of_them())

    def new_app(self, name: str = "") -> App:
        made = done(self.call("POST", "/apps", json={"name": name} if name else {}))["app"]
        return App(made["id"], made["key"])

    def new_merchant(self, app: App, **changes: Any) -> dict[str, Any]:
        body = MERCHANT | changes
        merchant: dict[str, Any] = done(self.call("POST", "/merchants", app, json=body))["merchant"]
        return merchant

    def approve(self, merchant: Mapping[str, Any]) -> None:
        """The operator lets a live merchant trade, as it is now."""
        path = f"/operator/merchants/{merchant['id']}/approval"
        body = {"version": self.waiting()[merchant["id"]]["version"]}
        done(self.call("PUT", path, OPERATOR_KEY, json=body))

    def waiting(self) -> dict[str, dict[str, Any]]:
        """The merchants that wait for approval, by their ids, the newest first."""
        path = "/operator/waiting-merchants?limit=100"
        return {each["id"]: each for each in lines_of(self.call("GET", path, OPERATOR_KEY))}

    def pay(self, merchant: Mapping[str, Any], amount: int = 1_000, **changes: Any) -> str:
        """A customer's transaction; its id."""
        body = {"key": merchant["key"], "amount": amount, "currency": "DKK", "card": GOOD_CARD}
        made = done(self.call("POST", "/sandbox/payments", json=body | changes))
        return str(made["transaction"]["id"])

    def transaction(self, app: App, transaction: str) -> dict[str, Any]:
        found: dict[str, Any] = done(self.call("GET", f"/transactions/{transaction}", app))
        return found["transaction"]

    def act(self, app: App, transaction: str, what: str, **body: Any) -> dict[str, Any]:
        """Capture, refund or void: `what` in the plural."""
        path = f"/transactions/{transaction}/{what}"
        done_: dict[str, Any] = done(self.call("POST", path, app, json=body))
        return done_["transaction"]

    def listed(self, path: str, app: App, **query: Any) -> list[dict[str, Any]]:
        response = self.call("GET", path, app, params={"limit": 100} | query)
        return lines_of(response)


def done(response: httpx.Response) -> Any:
    """The body of a call that must have worked; None without one."""
    assert response.is_success, (response.status_code, response.text)
    return response.json() if response.content else None


def lines_of(response: httpx.Response) -> list[dict[str, Any]]:
    """The elements of a list, read line by line as clients do."""
    assert response.status_code == 200, (response.status_code, response.text)
    assert response.headers["content-type"] == "application/json"
    first, *elements, last, rest = response.text.split("\n")
    assert (first, last, rest) == ("[", "]", "")
    for line in elements[:-1]:
        assert line.endswith(","), line
    return [json.loads(line.removesuffix(",")) for line in elements]


def fields_of(response: httpx.Response) -> list[str]:
    """The fields of a validation error."""
    assert response.status_code == 400, (response.status_code, response.text)
    errors = response.json()
    assert isinstance(errors, list), errors
    for error in errors:
        assert error.keys() == {"field", "message"}, error
        assert error["message"]
    return [error["field"] for error in errors]


def basic(key: str) -> str:
    return "Basic " + b64encode(f":{key}".encode()).decode()
