"""Tills that take payments while things break, and know what became of every call.

A till makes transactions and captures, refunds and voids what is in them, one call after another,
each with an idempotency key of its own. An answer below 500 is definite; whatever else happens, the
same call is made again with the same key until there is one. Nobody else touches a till's own
transactions, so it knows what each answer must be; all tills of a shop draw on one shared
transaction besides.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import httpx

from tests.support.waiting import until

CALL_TIMEOUT_S = 20.0
# Longer than a node takes to start again on a busy machine.
DEFINITE_WITHIN_S = 180.0
TOO_MANY, LOST_RACE = 429, 409
AMOUNT_MAX = 5_000
CARD = {"number": "4100000000000000", "expiry": {"month": 8, "year": 2066}, "code": "123"}
MERCHANT = {
    "company": {"country": "DK"},
    "currency": "DKK",
    "email": "shop@example.com",
    "website": "https://example.com",
    "descriptor": "Coffee & Cake",
    "test": True,
}


@dataclass(slots=True)
class Sums:
    """What must have become of a transaction."""

    amount: int
    captured: int = 0
    refunded: int = 0
    voided: int = 0

    @property
    def pending(self) -> int:
        return self.amount - self.captured - self.voided

    def room_for(self, what: str) -> int:
        """The largest amount that may be captured, refunded, voided (T5 to T7)."""
        return self.captured - self.refunded if what == "refunds" else self.pending

    def add(self, what: str, amount: int) -> None:
        match what:
            case "captures":
                self.captured += amount
            case "refunds":
                self.refunded += amount
            case "voids":
                self.voided += amount

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Sums":
        """As a document of the API says; `pendingAmount` must agree."""
        sums = cls(
            document["amount"],
            document["capturedAmount"],
            document["refundedAmount"],
            document["voidedAmount"],
        )
        assert sums.pending == document["pendingAmount"], document
        return sums


@dataclass(frozen=True, slots=True)
class Told:
    """A call that was done, and the bytes of its answer."""

    path: str
    body: Mapping[str, object]
    key: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Shop:
    """A merchant. `shared`: the transaction that all its tills capture from; `source`: one whose
    card pays for everything else."""

    merchant: str
    shared: str
    source: str


class Till:
    """One caller with a connection of its own. `goes_on`: while it is set, calls begin."""

    def __init__(self, name: str, client: httpx.Client, shop: Shop, goes_on: Event) -> None:
        self.name = name
        self.shop = shop
        self.told: list[Told] = []
        self.transactions: dict[str, Sums] = {}
        self.lines: Counter[str] = Counter()
        self.from_shared = 0
        self.asked_again = 0
        self.is_asking = False
        self._client = client
        self._goes_on = goes_on
        self._random = random.Random(name)
        self._number = 0

    def take_a_payment(self) -> None:
        """One transaction, from its beginning to wherever it ends."""
        amount = self._random.randint(100, AMOUNT_MAX)
        body = {"transactionId": self.shop.source, "currency": "EUR", "amount": amount}
        made = self._ask(f"/merchants/{self.shop.merchant}/transactions", body)
        assert made.status_code == 201, (self.name, made.status_code, made.text)
        transaction = made.json()["transaction"]["id"]
        assert transaction not in self.transactions, "an id is given once"
        sums = self.transactions[transaction] = Sums(amount)
        for what in ("captures", *self._random.choices(("captures", "refunds", "voids"), k=3)):
            self._move(transaction, sums, what)
        self._draw_on_the_shared()

    def _move(self, transaction: str, sums: Sums, what: str) -> None:
        room = sums.room_for(what)
        amount = self._random.randint(1, max(2, room * 5 // 4))
        answer = self._ask(f"/transactions/{transaction}/{what}", {"amount": amount})
        seen = (self.name, what, amount, sums, answer.status_code, answer.text)
        if amount > room:
            assert answer.status_code == 400, seen
            return
        assert answer.status_code == 201, seen
        sums.add(what, amount)
        self.lines[what] += 1
        assert Sums.of(answer.json()["transaction"]) == sums, seen

    def _draw_on_the_shared(self) -> None:
        """Nobody knows whether something is left of it."""
        answer = self._ask(f"/transactions/{self.shop.shared}/captures", {"amount": 1})
        assert answer.status_code in (201, 400, LOST_RACE), (answer.status_code, answer.text)
        if answer.status_code == 201:
            self.from_shared += 1
            self.lines["captures"] += 1

    def _ask(self, path: str, body: Mapping[str, object]) -> httpx.Response:
        """The definite answer."""
        self._goes_on.wait()
        self.is_asking = True
        self._number += 1
        key = f"{self.name}-{self._number}"
        answer = until(
            lambda: self._definite(path, body, key), f"{path}: an answer", DEFINITE_WITHIN_S
        )
        self.is_asking = False
        assert answer is not None
        if answer.status_code == 201:
            self.told.append(Told(path, body, key, answer.content))
        return answer

    def _definite(self, path: str, body: Mapping[str, object], key: str) -> httpx.Response | None:
        try:
            answer = self._client.post(path, json=body, headers={"Idempotency-Key": key})
        except httpx.TransportError:
            self.asked_again += 1
            return None
        if answer.status_code >= 500 or answer.status_code == TOO_MANY:
            self.asked_again += 1
            return None
        return answer

    @property
    def calls(self) -> int:
        """Those that began."""
        return self._number


@dataclass(slots=True)
class Load:
    """All tills of all shops; they run while `flowing`."""

    url: str
    key: str
    shops: list[Shop]
    tills: list[Till] = field(default_factory=list)
    _goes_on: Event = field(default_factory=Event)
    _loops: list[Future[None]] = field(default_factory=list)

    @contextmanager
    def flowing(self, tills_per_shop: int) -> Iterator[None]:
        """At the end every call that began has its answer."""
        stop = Event()
        clients = []
        for number in range(tills_per_shop * len(self.shops)):
            clients.append(self.client())
            shop = self.shops[number % len(self.shops)]
            self.tills.append(Till(f"till-{number}", clients[-1], shop, self._goes_on))

        def work(till: Till) -> None:
            while not stop.is_set():
                till.take_a_payment()

        with ThreadPoolExecutor(len(self.tills)) as threads:
            self._loops += [threads.submit(work, till) for till in self.tills]
            self._goes_on.set()
            try:
                yield
            finally:
                stop.set()
                self._goes_on.set()
        for client in clients:
            client.close()
        self._fail_with_the_tills()

    def client(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.url, auth=httpx.BasicAuth("", self.key), timeout=CALL_TIMEOUT_S
        )

    def wait_for_more(self, calls: int) -> None:
        """Until every till has begun so many more calls, and so has the answers to all but one."""
        wanted = {till.name: till.calls + calls + 1 for till in self.tills}

        def have_all() -> bool:
            self._fail_with_the_tills()
            return all(till.calls >= wanted[till.name] for till in self.tills)

        until(have_all, f"every till makes {calls} calls", DEFINITE_WITHIN_S)

    def _fail_with_the_tills(self) -> None:
        for loop in self._loops:
            if loop.done():
                loop.result()

    def pause(self) -> None:
        """Let no call begin, and wait for those that have begun."""
        self._goes_on.clear()
        until(lambda: not any(till.is_asking for till in self.tills), "all calls are answered")

    def go_on(self) -> None:
        self._goes_on.set()

    @property
    def asking(self) -> int:
        """Tills that wait for an answer."""
        return sum(till.is_asking for till in self.tills)


def open_shops(url: str, count: int, shared_amount: int) -> Load:
    """One app with so many merchants."""
    with httpx.Client(base_url=url, timeout=CALL_TIMEOUT_S) as client:

        def post(path: str, body: Mapping[str, object]) -> Any:
            answer = client.post(path, json=body)
            assert answer.status_code == 201, (path, answer.status_code, answer.text)
            return answer.json()

        key = post("/apps", {"name": "Tills"})["app"]["key"]
        client.auth = httpx.BasicAuth("", key)
        shops = []
        for _ in range(count):
            merchant = post("/merchants", MERCHANT)["merchant"]
            payment = {"key": merchant["key"], "currency": "EUR", "card": CARD}
            source, shared = (
                post("/sandbox/payments", payment | {"amount": amount})["transaction"]["id"]
                for amount in (1, shared_amount)
            )
            shops.append(Shop(merchant["id"], shared, source))
    return Load(url, key, shops)
