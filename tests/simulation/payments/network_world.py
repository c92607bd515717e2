"""A run of moves at a card network: processes and the network fail between any two steps.

What runs is the code that answers calls (`network_moves.move`), the worker that enquires and a real
shard; what is played are their time, the books' disk, the network's gateway and the ways between.
A call is cut off at a random moment, so after the intent, in the network, before its result is
written or before its reply. The gateway counts what it did.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from tests.simulation.ledger.workload import CARD, Workload
from tests.support.ledger.memory_store import MemoryStore, MemoryTables
from tests.support.payments.api import REFERENCE
from tests.support.payments.card_gateway import CardGateway
from tests.support.virtual_loop import VirtualLoop
from tollgate.actors.ledger.book.entities import Intent, entity_of_row
from tollgate.actors.ledger.law.commands import (
    Authorise,
    Capture,
    Command,
    Movement,
    Order,
    Refund,
    Void,
)
from tollgate.actors.ledger.law.outcomes import Done, Indefinite, OrderOutcome, Refusal
from tollgate.actors.ledger.law.rows import EntityRow, OperationRow
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import (
    BookId,
    Currency,
    EntityId,
    NetworkAction,
    NetworkApproved,
    NetworkDeclined,
)
from tollgate.actors.ledger.shard.pipeline import Shard
from tollgate.actors.ledger.storage.open_intents import ClaimedIntent, pause_ms
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.rejections import Rejection, Unavailable
from tollgate.serve.payments.api.routes.network_moves import move
from tollgate.serve.payments.network.card_network import (
    CardNetworks,
    NetworkAnswer,
    NetworkOperation,
    Unknown,
)
from tollgate.serve.payments.network.conclusions import Conclusions
from tollgate.serve.payments.network.enquiries import EnquiryWorker

CALLS = 12
STEP_S = 0.05
AMOUNTS = (100, 300, 808)


class LoopClock:
    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now_s(self) -> float:
        return 1_800_000_000 + self._loop.now_s

    def monotonic_s(self) -> float:
        return self._loop.now_s


class FaultyNetwork:
    """The gateway, at the end of a line that loses, delays and repeats until it is `healed`."""

    name = "acquirer"
    enquired_after_ms = 2_000

    def __init__(self, loop: VirtualLoop, chance: Random) -> None:
        self.gateway = CardGateway(refused_amounts=frozenset({808}))
        self.is_healed = False
        self._loop = loop
        self._chance = chance
        self._late: set[asyncio.Task[None]] = set()

    def is_immediate(self, action: NetworkAction, amount: int) -> bool:
        return False

    async def carry_out(self, operation: NetworkOperation, card: object = None) -> NetworkAnswer:
        return await self._call("operations", operation)

    async def enquire(self, operation: NetworkOperation) -> NetworkAnswer:
        return await self._call("enquiries", operation)

    async def reverse(self, operation: NetworkOperation) -> NetworkAnswer:
        return await self._call("reversals", operation)

    async def _call(self, what: str, operation: NetworkOperation) -> NetworkAnswer:
        asked = {
            "id": operation.id,
            "action": operation.action.value,
            "amount": {"value": operation.amount},
        }
        await self._loop.rest(self._chance.random() * STEP_S)
        dice = 1.0 if self.is_healed else self._chance.random()
        if dice < 0.15:
            return Unknown("lost on the way there")
        if dice < 0.25:
            self._later(what, asked)
            return Unknown("late")
        told = self.gateway.answer(what, asked)
        if dice < 0.35:
            self.gateway.answer(what, asked)  # the line repeats what it carried
        await self._loop.rest(self._chance.random() * STEP_S)
        if dice < 0.5:
            return Unknown("lost on the way back")
        if told["outcome"] == "approved":
            return NetworkApproved(told["reference"], told.get("cardToken", ""))
        return NetworkDeclined(REFERENCE.errors.error(told["code"]))

    def _later(self, what: str, asked: dict[str, Any]) -> None:
        async def arrive() -> None:
            await self._loop.rest(self._chance.random() * 10)
            self.gateway.answer(what, asked)

        task = self._loop.create_task(arrive())
        self._late.add(task)
        task.add_done_callback(self._late.discard)


class Books:
    """The shard, which may be taken over at any order, and the tables as doors read them."""

    def __init__(self, loop: VirtualLoop, chance: Random) -> None:
        self.tables = MemoryTables()
        self.is_healed = False
        self._loop = loop
        self._chance = chance
        self._clock = LoopClock(loop)
        self._due: dict[EntityId, tuple[int, int]] = {}

    async def start(self) -> None:
        store = MemoryStore(self.tables)
        await store.take_over("ledger", "an incarnation")
        self._shard = Shard(store, self._clock, lambda _: None)

    async def execute(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        dice = 1.0 if self.is_healed else self._chance.random()
        await self._loop.rest(self._chance.random() * STEP_S)
        if dice < 0.1:
            await self.start()
            return [Indefinite("lost") for _ in orders]
        done = await self._shard.execute(orders)
        await self._loop.rest(self._chance.random() * STEP_S)
        return [Indefinite("lost on the way back")] if dice < 0.2 else done

    async def entity(self, kind: str, entity: EntityId) -> EntityRow | None:
        row = self.tables.entities.get(entity)
        return row if row is not None and row.kind == kind else None

    async def operation_named(self, operation: str) -> OperationRow | None:
        return self.tables.operations.get(operation)

    @property
    def intents(self) -> list[Intent]:
        rows = [row for row in self.tables.entities.values() if row.kind == "intent"]
        return [found for row in rows if isinstance(found := entity_of_row(row), Intent)]

    @property
    def transactions(self) -> list[Transaction]:
        rows = [row for row in self.tables.entities.values() if row.kind == "transaction"]
        return [found for row in rows if isinstance(found := entity_of_row(row), Transaction)]

    async def claim(self, now_ms: int, count_max: int) -> list[ClaimedIntent]:
        claimed = []
        for intent in self.intents:
            attempts, due_ms = self._due.get(intent.id, (0, 0))
            if due_ms <= now_ms and len(claimed) < count_max:
                self._due[intent.id] = (attempts + 1, now_ms + pause_ms(attempts))
                claimed.append(ClaimedIntent(intent, attempts + 1))
        return claimed

    async def forget_settled(self) -> None:
        return

    async def oldest_ms(self) -> int | None:
        return None


@dataclass
class Ordered:
    """A call, and what was told last: a reply, or the reason why there is none."""

    key: str
    command: Movement
    told: Done | Rejection | None = None
    tellings: list[tuple[int, bytes]] = field(default_factory=list)


class World:
    """One run of one seed."""

    def __init__(self, seed: int, loop: VirtualLoop) -> None:
        self.chance = Random(seed)
        self.loop = loop
        self.network = FaultyNetwork(loop, self.chance)
        self.books = Books(loop, self.chance)
        self.ordered: list[Ordered] = []
        self._workload = Workload(self.chance)
        self._app = EntityId("")
        self._book = BookId("6b024b2e" + "1" * 16)
        conclusions = Conclusions(self.books, self._workload)
        self._context = SimpleNamespace(
            commands=SimpleNamespace(give=self._give),
            conclusions=conclusions,
            entities=SimpleNamespace(merchant=self._merchant),
            store=self.books,
            outcome=self._outcome,
        )
        networks = CardNetworks(cast("Any", self.network), cast("Any", self.network))
        self._worker = EnquiryWorker(
            self.books, networks, conclusions, LoopClock(loop), REFERENCE.errors.error(12)
        )

    async def run(self) -> "World":
        await self.books.start()
        self.books.is_healed = True
        self._app = EntityId("6b024b2e" + "2" * 16)
        opening = self._workload.opening(self._book, "EUR", self._app)
        (opened,) = await self.books.execute([opening])
        assert isinstance(opened, Done), opened
        self.books.is_healed = False
        for number in range(CALLS):
            await self._call_once(number)
        self.network.is_healed = self.books.is_healed = True
        for _ in range(40):
            if not self.books.intents:
                break
            await self.loop.rest(30)
            await self._worker.look()
        await self.loop.rest(30)
        for ordered in self.ordered:
            if ordered.key:
                await self._order(ordered)
        return self

    async def _call_once(self, number: int) -> None:
        key = f"key-{number}" if self.chance.random() < 0.7 else ""
        ordered = Ordered(key, self._command())
        self.ordered.append(ordered)
        for _ in range(self.chance.randint(1, 3) if key else 1):
            task = self.loop.create_task(self._order(ordered))
            if self.chance.random() < 0.5:
                await self.loop.rest(self.chance.random() * 8 * STEP_S)
                task.cancel()
            await asyncio.wait([task])
            if self.chance.random() < 0.3:
                await self.loop.rest(self.chance.random() * 5)
                await self._worker.look()
            self.check_that_nothing_is_booked_too_early()

    def _command(self) -> Movement:
        amount = self.chance.choice(AMOUNTS)
        good = [each for each in self.books.transactions if each.is_successful]
        if not good or self.chance.random() < 0.3:
            error, exponent = None, 2
            return Authorise(Currency("EUR"), exponent, amount + 1_000, CARD, "", "", error)
        about = self.chance.choice(good)
        amount = self.chance.choice((100, 300, 808 if about.pending > 808 else 200))
        if self.chance.random() < 0.5:
            return Capture(about.id, amount, None, "", None, None)
        return self.chance.choice((Refund(about.id, amount, ""), Void(about.id, amount)))

    async def _order(self, ordered: Ordered) -> None:
        call: Any = SimpleNamespace(key=ordered.key, request_id="request")
        context = cast("ApiContext", self._context)
        try:
            ordered.told = await move(
                *(context, call, self._book, ordered.command, cast("Any", None)),
                cast("Any", self.network),
            )
            ordered.tellings.append((int(ordered.told.kind), ordered.told.body))
        except Rejection as rejected:
            ordered.told = rejected

    async def _outcome(self, done: Done) -> Done:
        return await ApiContext.outcome(cast("ApiContext", self._context), done)

    async def _merchant(self, _: BookId) -> Any:
        return SimpleNamespace(is_test=True)

    async def _give(self, call: Any, book: BookId, command: Command, _: Any, **__: Any) -> Done:
        order = self._workload.order(book, command, self._app)
        if call.key:
            order = Order(
                *(order.operation, book, command, order.origin, order.time_left_ms),
                idempotency_key=call.key,
                fingerprint=call.key,
            )
        (answer,) = await self.books.execute([order])
        if isinstance(answer, Done):
            return answer
        if isinstance(answer, Refusal):
            raise Rejection(answer.message)
        raise Unavailable("the outcome is not known", 1)

    # What must hold

    def check_that_nothing_is_booked_too_early(self) -> None:
        """The books show no money that the network may not have moved."""
        found, did = self.books.transactions, self.network.gateway.holds
        pairs = {
            "capture": sum(each.captured for each in found),
            "refund": sum(each.refunded for each in found),
            "void": sum(each.voided for each in found),
            "authorise": sum(each.amount for each in found if each.is_successful),
        }
        for action, booked in pairs.items():
            assert booked <= sum(did(action)), f"{action}: {booked} is booked and not done"

    def check(self) -> None:
        """After all has healed: nothing is unknown, doubled or lost, and everybody is told."""
        gateway = self.network.gateway
        assert self.books.intents == [], "an intent is open though the network is back"
        operations = [operation for operation, _, _ in gateway.done]
        assert len(operations) == len(set(operations)), "a move was carried out twice"
        found = self.books.transactions
        held = sorted(each.amount for each in found if each.is_successful)
        assert held == sorted(gateway.holds("authorise")), "a hold is not in the books, or doubled"
        for name in ("capture", "refund", "void"):
            total = sum(getattr(each, _FIELDS[name]) for each in found)
            assert total == sum(gateway.holds(name)), f"a {name} was lost, or not done"
        carried = [operation for what, operation in gateway.asked if what == "operations"]
        assert set(carried) >= set(operations)
        for ordered in self.ordered:
            if ordered.key:
                assert not isinstance(ordered.told, Unavailable), f"{ordered.key} is never told"
                assert len(set(ordered.tellings)) <= 1, f"{ordered.key} is told two things"
        keys = [row.key for row in self.books.tables.operations.values() if row.key]
        assert len(keys) == len(set(keys)), "a key has two intents"


_FIELDS = {"capture": "captured", "refund": "refunded", "void": "voided"}


def run(seed: int) -> World:
    """The run of a seed, from the beginning to the end."""
    loop = VirtualLoop()
    return loop.run(World(seed, loop).run())
