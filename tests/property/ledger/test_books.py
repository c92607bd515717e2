"""Random commands on books, against a model of six numbers per transaction and an auditor."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.ledger.auditor import amounts_of, audit, audit_replay
from tests.support.ledger.books import (
    DECLINED,
    DKK,
    EUR,
    JPY,
    KWD,
    NOW_MS,
    USD,
    Shop,
    authorise,
    open_shop,
    rate,
)
from tollgate.actors.ledger.book.machine import OrderEffect
from tollgate.actors.ledger.law.commands import (
    Capture,
    ChangeMerchant,
    Command,
    DecideDispute,
    InviteUser,
    OpenDispute,
    PayOut,
    Refund,
    ReportFraud,
    RotateKey,
    SaveCard,
    Void,
)
from tollgate.actors.ledger.law.outcomes import RefusalReason
from tollgate.actors.ledger.law.values import (
    DIRECTORY,
    NOBODY,
    OPERATOR,
    Currency,
    EntityId,
    Price,
    Pricing,
    ProcessingError,
    Rate,
)

DKK_IN_EUR = rate(DKK, EUR, 134, 1_000)
# Which of the transactions there are; which part of what is there, and how far beside it.
INDEXES = st.integers(0, 5)
SHARES = st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(1, 7), Fraction(1)])
EXTRAS = st.sampled_from([0, 1, 0, -1, 0, -(2**53), 0])
RATES = st.tuples(st.integers(1, 2_000), st.integers(1, 1_000))
PRICINGS = st.builds(
    Pricing,
    st.integers(0, 50_000),
    st.builds(Price, st.sampled_from([EUR, DKK]), st.integers(0, 50)),
    st.builds(Price, st.sampled_from([EUR, DKK]), st.integers(0, 3_000)),
)


@dataclass
class Model:
    """A amount, P pending, C captured, R refunded, V voided, D in open or lost disputes."""

    id: EntityId
    shop: Shop
    currency: Currency
    amount: int
    pending: int
    captured: int = 0
    refunded: int = 0
    voided: int = 0
    disputed: int = 0

    @property
    def refundable(self) -> int:
        return self.captured - self.refunded - self.disputed

    @property
    def is_successful(self) -> bool:
        return self.pending + self.captured + self.voided == self.amount

    @property
    def document(self) -> Any:
        return self.shop.books.document("transaction", self.id)


class Trade(RuleBasedStateMachine):
    """A live merchant and a test one, whose accounts are in euros."""

    @initialize(
        pricings=st.tuples(PRICINGS, PRICINGS),
        amount=st.integers(100, 100_000),
        rates=st.tuples(RATES, RATES),
    )
    def open(
        self,
        pricings: tuple[Pricing, Pricing],
        amount: int,
        rates: tuple[tuple[int, int], tuple[int, int]],
    ) -> None:
        live = open_shop(EUR, pricings[0], is_test=False)
        self.books = live.books
        self.shops = (live, open_shop(EUR, pricings[1], is_test=True, books=self.books))
        self.models: list[Model] = []
        self.disputes: list[tuple[Model, EntityId, int]] = []
        for shop, currency in zip(self.shops, (EUR, USD), strict=True):
            self.add(shop, currency, amount, None, None)
            for numbers in rates:
                self.capture(0, Fraction(1, 3), 0, numbers)

    def give(
        self, shop: Shop, command: Command, is_allowed: bool, app: EntityId
    ) -> OrderEffect | None:
        """Give an order, which must be done exactly when the model allows it; or change nothing."""
        before = (self.books.head(shop.book), dict(self.books.tables), len(self.books.log))
        answer = self.books.attempt(shop.book, command, app)
        assert isinstance(answer, OrderEffect) is is_allowed, (answer, command)
        if isinstance(answer, OrderEffect):
            return answer
        assert answer.kind is RefusalReason.CONSTRAINT
        after = (self.books.head(shop.book), self.books.tables, len(self.books.log))
        assert after == before
        return None

    def add(
        self,
        shop: Shop,
        currency: Currency,
        amount: int,
        error: ProcessingError | None,
        source: Model | None,
    ) -> None:
        command = authorise(amount, currency, error=error, source=source and source.id)
        app = shop.app if source else NOBODY
        is_allowed = amount > 0 and (source is None or source.is_successful)
        step = self.give(shop, command, is_allowed, app)
        if step is not None:
            transaction = max(step.entities)  # its source, if that changed too, is older
            self.models.append(Model(transaction, shop, currency, amount, 0 if error else amount))

    def pick(self, index: int) -> Model:
        return self.models[-1 - index % len(self.models)]

    @rule(milliseconds=st.integers(-5_000, 70_000))
    def pass_time(self, milliseconds: int) -> None:
        self.books.now_ms += milliseconds

    @rule(
        number=st.integers(0, 1),
        currency=st.sampled_from([EUR, USD, JPY, KWD]),
        amount=st.integers(-1, 60) | st.integers(1, 100_000),
        is_declined=st.sampled_from([False, False, False, True]),
    )
    def authorise(self, number: int, currency: Currency, amount: int, is_declined: bool) -> None:
        error = DECLINED if is_declined else None
        self.add(self.shops[number], currency, amount, error, None)

    @rule(index=INDEXES, amount=st.integers(1, 1_000), is_declined=st.booleans())
    def repeat(self, index: int, amount: int, is_declined: bool) -> None:
        """T12."""
        source = self.pick(index)
        error = DECLINED if is_declined else None
        self.add(source.shop, source.currency, amount, error, source)

    @rule(index=INDEXES, share=SHARES, extra=EXTRAS, numbers=RATES)
    def capture(self, index: int, share: Fraction, extra: int, numbers: tuple[int, int]) -> None:
        """T5."""
        model = self.pick(index)
        amount = int(model.pending * share) + extra
        exchange = None if model.currency == EUR else rate(model.currency, EUR, *numbers)
        command = Capture(model.id, amount, model.currency, "", exchange, DKK_IN_EUR)
        if self.give(model.shop, command, 0 < amount <= model.pending, model.shop.app):
            model.pending -= amount
            model.captured += amount
            self.check_capture(model, amount, exchange)

    def check_capture(self, model: Model, amount: int, exchange: Rate | None) -> None:
        """M3, M5: each part was rounded once, to the nearest."""
        line = model.shop.lines[-1]
        worth = line["balance"] + line["fee"]
        assert abs(worth - amount * fraction(exchange)) <= Fraction(1, 2)
        head = self.books.head(model.shop.book)
        assert head is not None
        assert head.merchant is not None
        pricing = head.merchant.pricing
        in_krone = pricing.flat.currency == DKK
        fee = model.document["trail"][-1]["fee"]
        exact_flat = pricing.flat.amount * fraction(DKK_IN_EUR if in_krone else None)
        assert abs(fee["flat"] - exact_flat) <= Fraction(1, 2)
        assert abs(fee["rate"] - Fraction(worth * pricing.rate_ppm, 10**6)) <= Fraction(1, 2)

    @rule(index=INDEXES, share=SHARES, extra=EXTRAS)
    def refund(self, index: int, share: Fraction, extra: int) -> None:
        """T6."""
        model = self.pick(index)
        amount = int(model.refundable * share) + extra
        is_allowed = 0 < amount <= model.refundable
        if self.give(model.shop, Refund(model.id, amount, ""), is_allowed, model.shop.app):
            model.refunded += amount

    @rule(index=INDEXES, share=SHARES, extra=EXTRAS)
    def void(self, index: int, share: Fraction, extra: int) -> None:
        """T7."""
        model = self.pick(index)
        amount = int(model.pending * share) + extra
        before = model.shop.balance
        is_allowed = 0 < amount <= model.pending
        if self.give(model.shop, Void(model.id, amount), is_allowed, model.shop.app):
            model.pending -= amount
            model.voided += amount
        assert model.shop.balance == before

    @rule(index=INDEXES, share=SHARES, extra=EXTRAS)
    def dispute(self, index: int, share: Fraction, extra: int) -> None:
        """T2, T10."""
        model = self.pick(index)
        amount = int(model.refundable * share) + extra
        command = OpenDispute(model.id, amount, 1, "", NOW_MS, DKK_IN_EUR)
        step = self.give(model.shop, command, 0 < amount <= model.refundable, OPERATOR)
        if step is not None:
            model.disputed += amount
            (dispute,) = step.entities.keys() - {model.id}
            self.disputes.append((model, dispute, amount))

    @rule(index=INDEXES, is_won=st.booleans(), is_won_then=st.booleans())
    def decide(self, index: int, is_won: bool, is_won_then: bool) -> None:
        """T10."""
        if not self.disputes:
            return
        model, dispute, amount = self.disputes.pop(index % len(self.disputes))
        (opened,) = (
            entry for entry in model.document["trail"] if entry.get("dispute") == {"id": dispute}
        )
        taken = -opened["balance"] - opened["fee"]["flat"]
        before = model.shop.balance
        assert self.give(model.shop, DecideDispute(dispute, is_won), True, OPERATOR)
        model.disputed -= amount if is_won else 0
        assert model.shop.balance - before == (taken if is_won else 0)
        self.give(model.shop, DecideDispute(dispute, is_won_then), False, OPERATOR)

    @rule(number=st.integers(0, 1), share=SHARES, extra=EXTRAS)
    def pay_out(self, number: int, share: Fraction, extra: int) -> None:
        shop = self.shops[number]
        balance = shop.balance
        amount = int(balance * share) + extra
        if self.give(shop, PayOut(amount, ""), 0 < amount <= balance, OPERATOR):
            assert shop.balance == balance - amount

    @rule(index=INDEXES)
    def trespass(self, index: int) -> None:
        """T11, T12: what is in one book does not exist in the other, nor for the other's app."""
        model = self.pick(index)
        (other,) = (shop for shop in self.shops if shop is not model.shop)
        for command in (
            Capture(model.id, 1, None, "", None, None),
            Refund(model.id, 1, ""),
            Void(model.id, 1),
            SaveCard(model.id, ""),
            authorise(1, source=model.id),
        ):
            assert other.refusal(command).kind in (
                RefusalReason.NOT_FOUND,
                RefusalReason.CONSTRAINT,
            )
            assert model.shop.refusal(command, other.app).kind is RefusalReason.FORBIDDEN

    @rule(number=st.integers(0, 1), text=st.sampled_from(["ann@example.com", "bob@example.com"]))
    def administer(self, number: int, text: str) -> None:
        shop = self.shops[number]
        shop.do(ChangeMerchant(name=text))
        shop.do(InviteUser(text))
        key = f"digest-{self.books.operations}"
        self.books.do(DIRECTORY, RotateKey(shop.app, key, "ab12"), shop.app)

    @rule(index=INDEXES)
    def report(self, index: int) -> None:
        model = self.pick(index)
        assert self.give(model.shop, ReportFraud(model.id, None, 1), True, OPERATOR)
        self.give(model.shop, SaveCard(model.id, ""), model.is_successful, model.shop.app)

    @invariant()
    def the_model_agrees(self) -> None:
        """T3: what the model never changes, the books never change."""
        for model in getattr(self, "models", []):
            document = model.document
            assert amounts_of(document) == (
                model.amount,
                model.pending,
                model.captured,
                model.refunded,
                model.voided,
                model.disputed,
            )
            assert document["test"] is (model.shop is self.shops[1])
            assert document["merchantId"] == model.shop.book
            assert document["currency"] == model.currency

    @invariant()
    def what_is_gone_has_cost_fees_only(self) -> None:
        """M7: when all that was captured is refunded or charged back."""
        for model in getattr(self, "models", []):
            if model.captured == model.refunded + model.disputed:
                trail = model.document["trail"]
                fees = sum(entry["fee"]["flat"] + entry["fee"]["rate"] for entry in trail)
                assert sum(entry["balance"] for entry in trail) == -fees

    def teardown(self) -> None:
        """The auditor looks at every entry in turn, so once is enough."""
        if hasattr(self, "books"):
            audit(self.books)
            audit_replay(self.books)


def fraction(of: Rate | None) -> Fraction:
    return Fraction(1) if of is None else Fraction(of.numerator, of.denominator)


Trade.TestCase.settings = settings(stateful_step_count=40)
TestTrade = Trade.TestCase
