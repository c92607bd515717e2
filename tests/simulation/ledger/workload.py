"""What the shops of a run order: everything that moves money, and some that decides who may.

Amounts are few and repeat, so that orders meet on the same transactions; rates are such that halves
to be rounded come up; keys are used again, for the same order and for another one.
"""

from dataclasses import dataclass, field, replace
from random import Random

from tollgate.actors.ledger.law.commands import (
    AddApp,
    Authorise,
    Capture,
    ChangeMerchant,
    Command,
    DecideDispute,
    OpenDispute,
    OpenMerchant,
    Order,
    PayOut,
    Refund,
    ReportFraud,
    RevokeApp,
    SaveCard,
    Void,
)
from tollgate.actors.ledger.law.values import (
    OPERATOR,
    BookId,
    CardBrand,
    CardSummary,
    Currency,
    EntityId,
    Origin,
    Price,
    Pricing,
    ProcessingError,
    Rate,
)

PATIENCE_S = 4.0
EXPONENTS = {"EUR": 2, "DKK": 2, "USD": 2, "JPY": 0, "KWD": 3}
# Minor units of the second for one of the first: (numerator, denominator).
_RATES = {
    ("DKK", "EUR"): (13_404, 100_000),
    ("USD", "EUR"): (1_035, 1_000),
    ("JPY", "EUR"): (62, 100),
    ("KWD", "EUR"): (305, 1_000),
    ("EUR", "DKK"): (74_605, 10_000),
    ("USD", "DKK"): (6_715, 1_000),
    ("JPY", "DKK"): (445, 100),
    ("KWD", "DKK"): (22_345, 10_000),
}
RENAMING = ChangeMerchant(name="Shop 2")
AMOUNTS = (1, 50, 100, 100, 300, 995, 1_000, 3_000, 10**14, 10**15)
CARD = CardSummary("410000", "0000", 4_102_444_799_999, CardBrand.VISA, True)
DECLINED = ProcessingError(7, "insufficient funds", is_client=True, is_merchant=False)
PRICINGS = {
    "EUR": Pricing(12_500, Price(Currency("EUR"), 25), Price(Currency("EUR"), 1_500)),
    "DKK": Pricing(29_000, Price(Currency("EUR"), 25), Price(Currency("USD"), 1_500)),
}


def rate(source: str, target: str) -> Rate | None:
    if source == target:
        return None
    numerator, denominator = _RATES[source, target]
    return Rate(Currency(source), Currency(target), numerator, denominator, "2026-01-02")


@dataclass(slots=True)
class Shop:
    """A merchant, as those who order know it from what they were told."""

    book: BookId
    currency: str
    apps: list[EntityId]
    transactions: list[tuple[EntityId, str, int]] = field(default_factory=list)
    disputes: list[EntityId] = field(default_factory=list)
    keys: list[tuple[str, Order]] = field(default_factory=list)


class Workload:
    """Orders, one after another. The same `chance` gives the same ones."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._count = 0

    def operation(self) -> str:
        """What a web process mints for every request."""
        self._count += 1
        return f"operation-{self._count}"

    def order(self, book: BookId, command: Command, app: EntityId) -> Order:
        operation = self.operation()
        origin = Origin(app, "1234", "192.0.2.1", f"request of {operation}")
        return Order(operation, book, command, origin, int(PATIENCE_S * 1000))

    def opening(self, book: BookId, currency: str, app: EntityId) -> Order:
        command = OpenMerchant(
            public_key=f"public key of {book}",
            name="Shop",
            currency=Currency(currency),
            is_test=True,
            email="shop@example.com",
            website="example.com",
            descriptor="SHOP",
            company_country="DK",
            company_number="",
            iban="",
            pricing=PRICINGS[currency],
            creator=app,
            creator_name="app",
            creator_created_ms=0,
        )
        return self.order(book, command, app)

    def next(self, shop: Shop, *, refunds_only: bool = False) -> Order:
        """An order for a shop: often with a key, now and then with one that was used before."""
        chance = self._chance
        app = shop.apps[-1] if chance.random() < 0.25 else shop.apps[0]
        order = self.order(shop.book, self._command(shop, refunds_only), app)
        dice = chance.random()
        if shop.keys and dice < 0.15:
            key, earlier = chance.choice(shop.keys)
            if chance.random() < 0.7:
                return replace(earlier, operation=order.operation)
            origin = replace(order.origin, app=earlier.origin.app)
            return replace(order, idempotency_key=key, fingerprint=order.operation, origin=origin)
        if dice < 0.6:
            key = f"key of {order.operation}"
            order = replace(order, idempotency_key=key, fingerprint=order.operation)
            shop.keys.append((key, order))
        return replace(order, is_checked=chance.random() < 0.3)

    def _command(self, shop: Shop, refunds_only: bool) -> Command:
        chance = self._chance
        dice = 0.7 if refunds_only else chance.random()
        if not shop.transactions or dice < 0.22:
            return self._authorise(shop)
        if dice < 0.30:
            return self._about_the_shop(shop)
        if dice < 0.34:
            return PayOut(chance.choice((1, 100, 1_000)), "payout")
        if shop.disputes and dice < 0.40:
            return DecideDispute(chance.choice(shop.disputes), chance.random() < 0.6)
        transaction, currency, amount = chance.choice(shop.transactions[-3:])
        part = max(1, amount // chance.choice((1, 2, 3, 4, 4)))
        if dice < 0.65:
            named = chance.choice((None, None, currency, "SEK"))
            return Capture(
                transaction=transaction,
                amount=part,
                currency=None if named is None else Currency(named),
                descriptor="",
                rate=rate(currency, shop.currency),
                flat_rate=rate(PRICINGS[shop.currency].flat.currency, shop.currency),
            )
        if dice < 0.80:
            return Refund(transaction, part, "")
        if dice < 0.86:
            return Void(transaction, part)
        if dice < 0.95:
            return OpenDispute(
                transaction=transaction,
                amount=part,
                reason_code=1,
                reason_title="fraud",
                due_ms=0,
                dispute_rate=rate(PRICINGS[shop.currency].dispute.currency, shop.currency),
            )
        return chance.choice((SaveCard(transaction, ""), ReportFraud(transaction, None, 1)))

    def _authorise(self, shop: Shop) -> Authorise:
        chance = self._chance
        currency = chance.choice(list(EXPONENTS))
        return Authorise(
            currency=Currency(currency),
            exponent=EXPONENTS[currency],
            amount=chance.choice(AMOUNTS),
            card=CARD,
            descriptor="",
            custom="",
            error=DECLINED if chance.random() < 0.1 else None,
            source=shop.transactions[0][0] if shop.transactions and chance.random() < 0.2 else None,
        )

    def _about_the_shop(self, shop: Shop) -> Command:
        guest = shop.apps[-1]
        return self._chance.choice(
            (AddApp(guest, "guest", 0), AddApp(guest, "guest", 0), RevokeApp(guest), RENAMING)
        )


def operator(order: Order) -> Order:
    """The same order, given by the house."""
    return replace(order, origin=replace(order.origin, app=OPERATOR))
