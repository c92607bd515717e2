"""Errors of the law itself, which a replay repeats, are found by arithmetic of another kind."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.ledger.books import DKK, EUR, FREE, NOW_MS, USD, open_shop, rate
from tests.support.ledger.storage import Storage, emptied, runner
from tests.support.ledger.stored_story import story, write
from tests.support.ledger.story import entry_of
from tollgate.actors.ledger.book.case import Case
from tollgate.actors.ledger.book.decisions import transactions
from tollgate.actors.ledger.law import accounts, lots, money
from tollgate.actors.ledger.law.commands import (
    Capture,
    DecideDispute,
    OpenDispute,
    PayOut,
    Refund,
)
from tollgate.actors.ledger.law.events import SettledAmount
from tollgate.actors.ledger.law.rows import Entry, Posting
from tollgate.actors.ledger.law.values import OPERATOR, Currency, Price, Pricing, Rate
from tollgate.actors.ledger.proof.money.intent_audit import IntentAudit
from tollgate.actors.ledger.proof.money.money_audit import MoneyAudit
from tollgate.actors.ledger.proof.verification import empty_tables, verify_all

JOURNALS = sorted((Path(__file__).parents[2] / "conformance/ledger").glob("journal-*.jsonl"))


CAPTURED = "transaction.captured"


def cut_off(patch: pytest.MonkeyPatch) -> str:
    """Fractions are cut off."""
    patch.setattr(money, "divide_half_even", divmod)
    return "which its rate does not make (M6)"


def fee_rounded_up(patch: pytest.MonkeyPatch) -> str:
    def rate_fee(captured: int, pricing: Pricing) -> int:
        return -(-captured * pricing.rate_ppm // 1_000_000)

    patch.setattr(transactions, "rate_fee", rate_fee)
    return "the fee is "


def fee_not_charged(patch: pytest.MonkeyPatch) -> str:
    def settled(sum_: SettledAmount, sign: int, fee: int) -> tuple[Posting, ...]:
        del fee
        return _settled(sum_, sign, 0)

    _settled = accounts._settled
    patch.setattr(accounts, "_settled", settled)
    return "its postings are not those that its amounts make (M1)"


def refund_worth_more(patch: pytest.MonkeyPatch) -> str:
    def worth_of(takings: tuple[lots.Taking, ...]) -> int:
        return sum(taking.worth for taking in takings) + 1

    patch.setattr(lots, "worth_of", worth_of)
    return "what goes back is not what was taken from the captures (M7)"


def exchange_forgotten(patch: pytest.MonkeyPatch) -> str:
    def in_funding(case: Case, price: Price, *_: object) -> tuple[int, None]:
        return price.amount, None

    patch.setattr(transactions, "in_funding", in_funding)
    return "the capture is in JPY and was not exchanged for DKK (M4)"


def rate_of_other_currencies(patch: pytest.MonkeyPatch) -> str:
    def restated(given: Rate, *_: int) -> Rate:
        return replace(given, source=Currency("KRW"))

    patch.setattr(transactions, "is_rate_of", lambda *_: True)
    patch.setattr(transactions, "restated", restated)
    return "exchanged by a rate from KRW to DKK, and not from JPY to DKK (M4)"


def refund_takes_all_worth(patch: pytest.MonkeyPatch) -> str:
    def taken(there: tuple[lots.Lot, ...], amount: int) -> tuple[lots.Taking, ...]:
        return tuple(
            msgspec.structs.replace(taking, worth=there[taking.lot].left_worth)
            for taking in _taken(there, amount)
        )

    _taken = lots.take_from_lots
    patch.setattr(lots, "take_from_lots", taken)
    return "worth 0 and not "


def newest_taken_first(patch: pytest.MonkeyPatch) -> str:
    def taken(there: tuple[lots.Lot, ...], amount: int) -> tuple[lots.Taking, ...]:
        last = len(there) - 1
        takings = _taken(there[::-1], amount)
        return tuple(msgspec.structs.replace(each, lot=last - each.lot) for each in takings)

    _taken = lots.take_from_lots
    patch.setattr(lots, "take_from_lots", taken)
    return "is not taken from the oldest capture that has any (M7)"


PLANTED = [
    cut_off,
    fee_rounded_up,
    fee_not_charged,
    refund_worth_more,
    exchange_forgotten,
    rate_of_other_currencies,
    refund_takes_all_worth,
    newest_taken_first,
]


@pytest.mark.parametrize("plant", PLANTED)
def test_an_error_of_the_law_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], str]
) -> None:
    expected = plant(monkeypatch)

    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), story.__wrapped__())
        report = await verify_all(await storage.database(), lambda *_: None, NOW_MS)
        assert any(expected in finding for finding in report.findings), report.findings

    runner(emptied(f"sqlite:///{tmp_path}/ledger.sqlite"))(scenario)


def trade() -> list[Entry]:
    """Captures, a refund, and a dispute that is won, of a transaction in another currency."""
    shop = open_shop(DKK)
    transaction = shop.authorised(1_000, USD)
    usd, eur = rate(USD, DKK, 69, 10), rate(EUR, DKK, 746, 100)
    for amount in (600, 400):
        shop.do(Capture(transaction, amount, None, "", usd, eur))
    shop.do(Refund(transaction, 700, ""))
    shop.do(OpenDispute(transaction, 300, 1, "", NOW_MS, eur), OPERATOR)
    (dispute,) = shop.books.documents("dispute")
    shop.do(DecideDispute(dispute["id"], is_won=True), OPERATOR)
    return [entry for entry in shop.books.log if entry.book == shop.book]


def audited(entries: Sequence[Entry]) -> list[str]:
    async def check() -> list[str]:
        async with empty_tables() as scratch:
            audit = MoneyAudit(scratch)
            await audit.prepare()
            # (in pieces, as a long journal comes)
            return [line for entry in entries for line in await audit.check(entry.book, [entry])]

    return asyncio.run(check())


def more(kind: str, amount: int) -> Callable[[list[Entry]], list[Entry]]:
    """An entry says more, consistently with its postings alone."""

    def change(entry: Entry) -> Entry:
        if entry.kind != kind:
            return entry
        event = json.loads(entry.event)
        event["sum"]["worth"] += amount
        sign = 1 if kind == "transaction.captured" else -1
        extra = {"merchant": sign * amount, "fx": -sign * amount}
        legs = [
            replace(leg, amount=leg.amount + extra[leg.account])
            if leg.account in extra and leg.currency == DKK
            else leg
            for leg in entry.postings
        ]
        return replace(entry, event=json.dumps(event), postings=tuple(legs))

    return lambda entries: [change(entry) for entry in entries]


def twice(kind: str) -> Callable[[list[Entry]], list[Entry]]:
    return lambda entries: [
        each for entry in entries for each in [entry] * (1 + (entry.kind == kind))
    ]


def test_a_trade_adds_up() -> None:
    assert audited(trade()) == []


def test_a_dispute_that_is_won_may_put_back_a_unit_less_than_the_rate_says() -> None:
    """What is taken after it is held against what there was, then."""
    shop = open_shop(DKK, FREE)
    for numerator in range(1, 20):
        transaction = shop.authorised(10, USD)
        shop.do(Capture(transaction, 10, None, "", rate(USD, DKK, numerator, 7), None))
        shop.do(Refund(transaction, 1, ""))
        shop.do(OpenDispute(transaction, 2, 1, "", NOW_MS, None), OPERATOR)
        shop.do(Refund(transaction, 3, ""))
        dispute = shop.books.documents("dispute")[-1]
        shop.do(DecideDispute(dispute["id"], is_won=True), OPERATOR)
        for amount in (1, 1, 2, 2):
            shop.do(Refund(transaction, amount, ""))
    assert audited([entry for entry in shop.books.log if entry.book == shop.book]) == []


def test_a_payout_beyond_the_balance_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_shop(EUR, FREE)
    shop.captured(500)
    shop.do(PayOut(400, ""), OPERATOR)
    paid = [entry for entry in shop.books.log if entry.book == shop.book]
    assert audited(paid) == []
    monkeypatch.setattr(accounts, "merchant_balance", lambda _: 10**9)
    shop.do(PayOut(101, ""), OPERATOR)
    (found,) = audited([entry for entry in shop.books.log if entry.book == shop.book])
    assert "101 is paid out of a balance of 100 (part D)" in found


@pytest.mark.parametrize("kind", [CAPTURED, "transaction.refunded", "transaction.voided"])
def test_an_intent_ends_once_by_what_was_intended(kind: str) -> None:
    price = {"currency": "EUR", "amount": 5}
    what = price if kind.endswith("voided") else {"sum": price}
    then = {"event": f"{kind}/1", "transaction": "t", **what}
    intended = {"intent": "i", "then": then, "transaction": "t"}
    end = {**then, "intent": "i"}
    before: dict[str, Any] = {"rate_ppm": 1}

    def findings(kind: str, end: dict[str, Any]) -> list[str]:
        audit = IntentAudit()
        assert audit.follow("network.intended", intended, before) == (before, [])
        pricing, found = audit.follow(kind, end, {})
        assert pricing == before
        pricing, (again,) = audit.follow(kind, end, {})
        assert (pricing, "which is not open" in again) == ({}, True)
        return found

    assert findings(kind, end) == []
    assert findings("network.refused", {"intent": "i", "transaction": "t"}) == []
    dearer = {"currency": "EUR", "amount": 6}
    for other in (
        end | (dearer if kind.endswith("voided") else {"sum": dearer}),
        end | {"transaction": "u"},
    ):
        (found,) = findings(kind, other)
        assert "it is not the move that the intent i is of (I1)" in found


def changed(kind: str, change: Callable[[Any], None], leg: str = "") -> list[Entry]:
    """The trade with other events of a kind, and `leg` for DKK in their postings."""
    entries = []
    for entry in trade():
        if entry.kind == kind:
            event = json.loads(entry.event)
            change(event)
            postings = tuple(
                replace(each, currency=Currency(leg)) if leg and each.currency == DKK else each
                for each in entry.postings
            )
            entry = replace(entry, event=json.dumps(event), postings=postings)
        entries.append(entry)
    return entries


@pytest.mark.parametrize(
    ("kind", "change", "leg", "finding"),
    [
        (
            CAPTURED,
            lambda event: event["exchange"]["rate"].update(target="EUR"),
            "",
            "a rate from USD to EUR, and not from USD to DKK (M4)",
        ),
        (
            CAPTURED,
            lambda event: event["exchange"]["rate"].update(source_exponent=0),
            "",
            "a rate from USD/0 to DKK, and not from USD to DKK (M4)",
        ),
        (
            CAPTURED,
            lambda event: event["exchange"].update(remainder=1),
            "",
            "the capture is exchanged for 4140, which its rate does not make (M5)",
        ),
        (
            CAPTURED,
            lambda event: event["sum"].update(funding="EUR"),
            "EUR",
            "booked in EUR, and not in DKK",
        ),
        (
            CAPTURED,
            lambda event: event["sum"].update(funding_exponent=0),
            "DKK/0",
            "booked in DKK/0, and not in DKK (M4)",
        ),
        (
            CAPTURED,
            lambda event: event.update(flat_exchange=None),
            "",
            "the flat fee is in EUR and was not exchanged for DKK (M4)",
        ),
        (
            CAPTURED,
            lambda event: event["sum"].update(currency="JPY"),
            "",
            "the amount is in JPY, which ",
        ),
        (
            "dispute.opened",
            lambda event: event.update(fee_exchange=None),
            "",
            "the fee of the dispute is in EUR and was not exchanged for DKK (M4)",
        ),
    ],
)
def test_what_is_booked_in_another_currency_is_found(
    kind: str, change: Callable[[Any], None], leg: str, finding: str
) -> None:
    found = audited(changed(kind, change, leg))
    assert any(finding in line for line in found), found


def test_the_journals_of_earlier_days_add_up() -> None:
    for journal in JOURNALS:
        lines = journal.read_text(encoding="utf-8").splitlines()
        entries = sorted(map(entry_of, lines), key=lambda entry: (entry.book, entry.seq))
        assert audited(entries) == []


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (more("transaction.captured", 5), "which its rate does not make (M6)"),
        (more("transaction.refunded", 5), "what goes back is not what was taken"),
        (more("dispute.won", 5), "ends with another amount than it began with (T10)"),
        (twice("transaction.captured"), "captured and voided than was authorised (T1)"),
        (twice("transaction.refunded"), "went back than was captured (T2)"),
        (twice("dispute.won"), "ends again (T10)"),
    ],
)
def test_what_does_not_add_up_is_found(
    change: Callable[[list[Entry]], list[Entry]], finding: str
) -> None:
    assert any(finding in line for line in audited(change(trade())))
