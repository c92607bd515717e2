"""A run: shops that order through clients, shards that come and go, and all that goes wrong.

    calm     apps and merchants come to be
    storm    everybody orders; faults of the seed's mixture
    calm     everything heals, and whoever does not know what became of his order asks again

What was ordered and what was told is written down for the auditors, and nothing else is.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.simulation.ledger.faults import NONE, faults_of
from tests.simulation.ledger.network import Line
from tests.simulation.ledger.process import TIGHT, WIDE, Disk, End, Process
from tests.simulation.ledger.workload import Shop, Workload, operator
from tests.support.virtual_loop import VirtualLoop
from tollgate.actors.ledger.law.commands import (
    Authorise,
    Command,
    CreateApp,
    DecideDispute,
    OpenDispute,
    Order,
    PayOut,
    ReportFraud,
    ReserveMerchant,
)
from tollgate.actors.ledger.law.outcomes import Done, DoneKind, Indefinite, OrderOutcome, TurnedAway
from tollgate.actors.ledger.law.values import DIRECTORY, NOBODY, BookId, EntityId
from tollgate.actors.ledger.shard.client import ClientBounds, LedgerClient
from tollgate.actors.ledger.shard.routing import ShardMap

# As patient as the API's; or more, so that orders are asked again through whole restarts.
PATIENT = ClientBounds(waiting_max=32, batch_max=4, backoff_max_s=1.0, patience_s=10.0)
_OURS = ClientBounds()
SHIPPED = replace(PATIENT, patience_s=_OURS.patience_s, backoff_max_s=_OURS.backoff_max_s)
SUPERVISED_EVERY_S = 0.1
RESTART_S = 0.5
THINKING_S = 0.3
# By then, every late message has arrived.
QUIET_S = 6.5
OPERATORS = (OpenDispute, DecideDispute, ReportFraud, PayOut)


@dataclass(slots=True)
class Deed:
    """One order and what was told of it. `asked_seq`, `told_seq`: the last durable entry of its
    book then. `was_durable`: its operation's row was there when it was told. No answer: whoever
    asked hung up."""

    order: Order
    asked_seq: int
    told_seq: int = 0
    answer: OrderOutcome | None = None
    was_durable: bool = False


@dataclass(slots=True)
class Testimony:
    """All that the auditors get."""

    disk: Disk
    deeds: list[Deed] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    accidents: list[str] = field(default_factory=list)
    orders: int = 0


class World:
    """One run of one seed."""

    def __init__(self, seed: int, loop: VirtualLoop) -> None:
        self._chance = Random(seed)
        self._loop = loop
        self._faults = faults_of(self._chance)
        self._bounds = self._chance.choice((TIGHT, WIDE, WIDE))
        self._shards = ShardMap(self._chance.choice((1, 1, 2)))
        self._processes: list[Process] = []
        self._current: dict[str, Process] = {}
        self._lines: list[Line] = []
        self._background: set[asyncio.Task[None]] = set()
        self._workload = Workload(self._chance)
        self._is_storm = False
        self.testimony = Testimony(Disk())

    async def run(self) -> Testimony:
        for name in self._shards.names:
            self._start(name)
            self._in_background(self._supervise(name))
        clients = [self._client() for _ in range(2)]
        shops = [await self._open(clients[0], currency) for currency in ("EUR", "DKK")]
        self._storm()
        users = self._chance.randint(3, 5)
        await asyncio.gather(
            *(self._user(clients, self._chance.choice(shops)) for _ in range(users))
        )
        await self._calm_down()
        await self._ask_again(clients[0])
        self.testimony.ends = [p.end for p in self._processes if p.end is not None]
        self.testimony.accidents = self._loop.accidents
        return self.testimony

    def _client(self) -> LedgerClient:
        lines = [Line(self._finder(name), self._chance, NONE) for name in self._shards.names]
        self._lines += lines
        return LedgerClient(lines, self._chance.choice((PATIENT, PATIENT, SHIPPED)))

    def _finder(self, name: str) -> Callable[[], Process]:
        return lambda: self._current[name]

    # Shards

    def _start(self, name: str) -> None:
        faults = self._faults if self._is_storm else NONE
        number = len(self._processes)
        process = Process(name, number, self.testimony.disk, self._chance, faults, self._bounds)
        self._processes.append(process)
        self._current[name] = process
        self._in_background(process.start())

    async def _supervise(self, name: str) -> None:
        """Starts an incarnation when there is none, and now and then beside one that lives."""
        while True:
            await self._loop.rest(SUPERVISED_EVERY_S)
            process = self._current[name]
            if not process.is_alive:
                await self._loop.rest(self._chance.random() * RESTART_S)
                self._start(name)
            elif self._is_storm and self._chance.random() < self._faults.partition:
                if self._chance.random() < 0.3:
                    process.pause()
                self._start(name)
                # One of the two web processes hears of it.
                self._lines[self._shards.names.index(name) - self._shards.count].look_again()

    def _storm(self) -> None:
        self._is_storm = True
        for line in self._lines:
            line.storm(self._faults)
        for process in self._processes:
            process.storm(self._faults)

    async def _calm_down(self) -> None:
        self._is_storm = False
        for line in self._lines:
            line.heal()
        for process in self._processes:
            process.heal()
        self.testimony.disk.full_until_s = 0.0
        await self._loop.rest(QUIET_S)

    def _in_background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # Shops

    async def _open(self, client: LedgerClient, currency: str) -> Shop:
        apps = []
        for name in ("app", "guest"):
            command = CreateApp(name, f"digest of {currency} {name}", "1234")
            body = await self._calmly(client, DIRECTORY, command, NOBODY)
            apps.append(EntityId(body["app"]["id"]))
        body = await self._calmly(client, DIRECTORY, ReserveMerchant(), apps[0])
        book = BookId(body["merchant"]["id"])
        order = self._workload.opening(book, currency, apps[0])
        assert isinstance(await self._place(client, order), Done)
        return Shop(book, currency, apps)

    async def _calmly(
        self,
        client: LedgerClient,
        book: BookId,
        command: Command,
        app: EntityId,
    ) -> dict[str, dict[str, str]]:
        answer = await self._place(client, self._workload.order(book, command, app))
        assert isinstance(answer, Done), answer
        body: dict[str, dict[str, str]] = json.loads(answer.body)
        return body

    async def _user(self, clients: Sequence[LedgerClient], shop: Shop) -> None:
        chance = self._chance
        # Some only ask for their money back, mostly at a web process of their own.
        refunds_only = chance.random() < 0.4
        home = clients[0] if refunds_only or chance.random() < 0.2 else clients[1]
        for _ in range(chance.randint(6, 12)):
            await self._loop.rest(chance.random() * THINKING_S)
            order = self._workload.next(shop, refunds_only=refunds_only)
            if isinstance(order.command, OPERATORS) and chance.random() < 0.3:
                order = operator(order)
            copies = [order]
            if order.idempotency_key and chance.random() < 0.3:
                copies += [self._once_more(order) for _ in range(chance.randint(1, 5))]
            places = [home, *(chance.choice((home, *clients)) for _ in copies[1:])]
            answers = await asyncio.gather(
                *(self._place(place, copy) for place, copy in zip(places, copies, strict=True))
            )
            if isinstance(answers[0], Indefinite | TurnedAway | None) and chance.random() < 0.6:
                again = self._once_more(order)
                answers.append(await self._place(home, again))
            for answer in answers:
                _learn(shop, order, answer)

    def _once_more(self, order: Order) -> Order:
        """The same request of the same caller; without a key, it is another one."""
        return replace(order, operation=self._workload.operation())

    async def _place(self, client: LedgerClient, order: Order) -> OrderOutcome | None:
        disk, chance = self.testimony.disk, self._chance
        deed = Deed(order, len(disk.tables.entries[order.book]))
        self.testimony.deeds.append(deed)
        if self._is_storm and chance.random() < self._faults.hang_up:
            try:
                async with asyncio.timeout(chance.random() * 0.2):
                    (answer,) = await client.execute([order])
            except TimeoutError:
                return None
        else:
            (answer,) = await client.execute([order])
        deed.answer = answer
        deed.told_seq = len(disk.tables.entries[order.book])
        key = (order.origin.app, order.book, order.idempotency_key)
        deed.was_durable = order.operation in disk.tables.operations or (
            bool(order.idempotency_key) and key in disk.tables.by_key
        )
        return answer

    async def _ask_again(self, client: LedgerClient) -> None:
        """With the operation ids of those orders whose outcome nobody was told (C4)."""
        unknown = [
            deed.order
            for deed in self.testimony.deeds
            if deed.answer is None or isinstance(deed.answer, Indefinite)
        ]
        for order in unknown:
            answer = await self._place(client, order)
            if isinstance(answer, Indefinite):
                # An incarnation that was superseded learns it when it writes, which may be now.
                await self._loop.rest(SUPERVISED_EVERY_S + RESTART_S)
                answer = await self._place(client, order)
            assert not isinstance(answer, Indefinite), "in the calm, everybody is told"


def _learn(shop: Shop, order: Order, answer: OrderOutcome | None) -> None:
    if not isinstance(answer, Done) or answer.kind is not DoneKind.MADE:
        return
    match order.command:
        case Authorise(currency=currency, amount=amount):
            transaction = EntityId(json.loads(answer.body)["transaction"]["id"])
            if all(known != transaction for known, _, _ in shop.transactions):
                shop.transactions.append((transaction, currency, amount))
        case OpenDispute():
            shop.disputes.append(EntityId(json.loads(answer.body)["dispute"]["id"]))


def run(seed: int) -> Testimony:
    """The run of a seed, from the beginning to the end."""
    loop = VirtualLoop()
    return loop.run(World(seed, loop).run())
