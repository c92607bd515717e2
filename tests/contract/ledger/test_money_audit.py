"""Errors of the law itself, which a replay repeats, are found by arithmetic of another kind."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.ledger.books import DKK, EUR, NOW_MS, USD, open_shop, rate
from tests.support.ledger.storage import Storage, emptied, runner
from tests.support.ledger.stored_story import story, write
from tests.support.ledger.story import entry_of
from tollgate.actors.ledger.book.decisions import transactions
from tollgate.actors.ledger.law import accounts, lots, money
from tollgate.actors.ledger.law.commands import Capture, DecideDispute, OpenDispute, Refund
from tollgate.actors.ledger.law.events import SettledAmount
from tollgate.actors.ledger.law.rows import Entry, Posting
from tollgate.actors.ledger.law.values import OPERATOR, Pricing
from tollgate.actors.ledger.proof.money_audit import MoneyAudit
from tollgate.actors.ledger.proof.verification import empty_tables, verify_all

JOURNALS = sorted((Path(__file__).parents[2] / "conformance/ledger").glob("journal-*.jsonl"))


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


@pytest.mark.parametrize("plant", [cut_off, fee_rounded_up, fee_not_charged, refund_worth_more])
def test_an_error_of_the_law_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], str]
) -> None:
    expected = plant(monkeypatch)

    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), story.__wrapped__())
        report = await verify_all(await storage.database(), lambda *_: None, NOW_MS)
        assert any(expected in finding for finding in report.findings)

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
