"""A story in which everything happens that can happen in books, and how it is kept as a journal.

    python -m tests.support.ledger.story tests/conformance/ledger/journal-3      writes a new one

Journals that are kept are never written again: whatever was once stored must be read for ever
(F12). When events get a new kind or a new schema version, the story is told into the next one.
"""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.support.ledger.books import (
    CARD,
    DECLINED,
    DKK,
    EUR,
    JPY,
    KWD,
    NOW_MS,
    Books,
    Shop,
    authorise,
    open_shop,
    rate,
)
from tollgate.actors.ledger.book.head import head_of_row
from tollgate.actors.ledger.law.commands import (
    AddApp,
    Authorise,
    Capture,
    ChangeMerchant,
    ChangeRole,
    Conclude,
    CreateApp,
    DecideDispute,
    Intend,
    InviteUser,
    OpenDispute,
    PayOut,
    PriceMerchant,
    RecordSettlement,
    RecoverApp,
    Refund,
    RejectMerchant,
    ReplaceRecoveryCode,
    ReportFraud,
    RevokeApp,
    RevokeUser,
    RotateKey,
    SaveCard,
    Void,
)
from tollgate.actors.ledger.law.events import Intended
from tollgate.actors.ledger.law.notices import NoticeKind, notice, settled_day_id
from tollgate.actors.ledger.law.rows import Entry, Posting
from tollgate.actors.ledger.law.values import (
    DIRECTORY,
    NOBODY,
    OPERATOR,
    Advice,
    CardBrand,
    CardSummary,
    EntityId,
    KeyMode,
    NetworkApproved,
    NetworkDeclined,
    Price,
    Pricing,
    ProcessingError,
    Role,
)
from tollgate.actors.ledger.law.webhook_law import (
    AddWebhook,
    ChangeWebhook,
    RemoveWebhook,
    ReplaceWebhookSecret,
)

LATER = ProcessingError(7, "Insufficient funds", True, False, "Try later.", Advice(24, 5, "Wait."))
EUR_IN_DKK = replace(rate(EUR, DKK, 746, 100), provider="A bank")


def tell() -> Books:
    """The story; its books."""
    pricing = Pricing(14_500, Price(EUR, 25), Price(EUR, 2_500))
    shop = open_shop(DKK, pricing)
    _trade(shop)
    _administer(shop)
    live = open_shop(EUR, pricing, is_test=False, needs_approval=True, books=shop.books)
    live.do(RejectMerchant(), OPERATOR)
    live.do(live.approval(), OPERATOR)
    live.do(PriceMerchant(9_000, 10, 1_500), OPERATOR)
    shop.books.now_ms -= 60_000  # the clock goes back
    _dispute(live)
    return shop.books


def _trade(shop: Shop) -> None:
    """In three currencies, with 0, 2 and 3 decimals."""
    mastercard = CardSummary(
        "510000", "1111", CARD.expiry_ms, CardBrand.MASTERCARD, False, "token-2"
    )
    command = Authorise(JPY, 0, 10_001, mastercard, "YEN", '{"order":"Ø 17"}', None, "attempt")
    (yen,) = shop.do(command, NOBODY).entities
    for amount, numerator in ((3_333, 455), (3_333, 461), (3_000, 447)):
        exchange = rate(JPY, DKK, numerator, 10_000)
        shop.do(Capture(yen, amount, JPY, "", exchange, EUR_IN_DKK), idempotency_key=str(numerator))
        shop.books.now_ms += 1_500
    for amount in (1, 1_234, 4_321):
        shop.do(Refund(yen, amount, "SORRY"))
    shop.do(Void(yen, 335))
    fils = shop.authorised(1_005, KWD)
    for _ in range(2):
        shop.do(Capture(fils, 500, None, "", rate(KWD, DKK, 2_237, 1_000), EUR_IN_DKK))
    (card, *_) = shop.do(SaveCard(fils, "of Ann")).entities
    for error in (LATER, LATER, None):
        shop.do(authorise(250, DKK, error=error, source=card, is_source_card=True))
    shop.do(authorise(250, DKK, source=fils))
    shop.authorised(1, error=DECLINED)
    shop.do(PayOut(100, "January"), OPERATOR)


def _administer(shop: Shop) -> None:
    second = EntityId("a" * 24)
    shop.do(ChangeMerchant(name="Søstrene", email="new@example.com", descriptor="NEW"))
    shop.do(AddApp(second, "Second", NOW_MS))
    shop.do(RevokeApp(shop.app), second)
    shop.do(AddApp(shop.app, "Till", NOW_MS), second)
    (user,) = shop.do(InviteUser("ann@example.com")).events
    shop.do(InviteUser("bob@example.com"))
    (eve,) = shop.do(InviteUser("eve@example.com", Role.READ_ONLY)).events
    shop.do(ChangeRole(EntityId(_field(eve, "user")), Role.REFUNDS, is_app=False))
    shop.do(RevokeUser(EntityId(_field(user, "user"))))
    third = EntityId("b" * 24)
    shop.do(AddApp(third, "Third", NOW_MS, Role.REFUNDS))
    for role in (Role.READ_ONLY, Role.OWNER):
        shop.do(ChangeRole(third, role, is_app=True))
    (webhook,) = shop.do(AddWebhook("https://hooks.example/1", "sealed")).entities
    shop.do(AddWebhook("https://hooks.example/2", "sealed"))
    shop.do(RemoveWebhook(webhook))
    (other,) = shop.do(AddWebhook("https://hooks.example/3", "sealed")).entities
    shop.do(ReplaceWebhookSecret(other, "sealed again", replaces="sealed"))
    shop.do(ChangeWebhook(other, "https://hooks.example/4", ("merchant.changed",), False))
    shop.do(AddWebhook("https://hooks.example/5", "sealed", ("transaction.captured",), False))
    replaced = ReplaceRecoveryCode(shop.app, "recovery", "digest-0", "code-2")
    shop.books.do(DIRECTORY, replaced, shop.app)
    for number in (2, 3):
        shop.books.do(DIRECTORY, RotateKey(shop.app, f"rotated-{number}", "cd34"), shop.app)
    for mode in (KeyMode.TEST, KeyMode.LIVE, None):
        expiring = RotateKey(shop.app, f"of {mode}", "ij90", "", shop.books.now_ms + 1_000, mode)
        shop.books.do(DIRECTORY, expiring, shop.app)
    shop.books.now_ms += 1_000
    shop.books.do(DIRECTORY, RotateKey(shop.app, "after those", "kl12"), shop.app)
    created = CreateApp("Mine", "digest-t", "mn34", "", "", NOW_MS * 2, KeyMode.TEST)
    shop.books.do(DIRECTORY, created)
    shop.books.do(DIRECTORY, RecoverApp(shop.app, "code-2", "recovered", "ef56", salt="5a17"))
    again = RecoverApp(shop.app, "", "reissued", "gh78", "another recovery")
    shop.books.do(DIRECTORY, again, OPERATOR)


def _field(event: object, name: str) -> str:
    return str(getattr(event, name))


def _dispute(shop: Shop) -> None:
    transaction = shop.authorised(3_000)
    for amount in (1_000, 500, 1_500):
        shop.capture(transaction, amount)
    won = shop.disputed(transaction, 1_200)
    shop.do(Refund(transaction, 100, ""))
    lost = shop.disputed(transaction, 900)
    shop.disputed(transaction, 50)
    shop.do(DecideDispute(won, is_won=True), OPERATOR)
    shop.do(DecideDispute(lost, is_won=False), OPERATOR)
    shop.do(ReportFraud(transaction, NOW_MS, 4), OPERATOR)
    shop.do(ReportFraud(transaction, None, None), OPERATOR)
    shop.do(OpenDispute(transaction, 1, 10, "", NOW_MS, None), OPERATOR)
    _hear_of_the_network(shop, transaction)
    _ask_the_network(shop)


def _hear_of_the_network(shop: Shop, transaction: EntityId) -> None:
    """By its files."""
    told = notice(NoticeKind.DISPUTE, "acme", "CB-1", transaction, 2)
    for _ in range(2):  # (the second time it changes nothing)
        opening = OpenDispute(transaction, 2, 10, "", NOW_MS, None, told)
        shop.do(opening, OPERATOR)
    told = notice(NoticeKind.FRAUD, "acme", "F-1", transaction)
    shop.do(ReportFraud(transaction, NOW_MS, 4, told), OPERATOR)
    day = settled_day_id(shop.book, "2025-12-31", EUR, 2)
    for reference, amount in (("S-1", 700), ("S-2", -50)):
        told = notice(NoticeKind.SETTLEMENT, "acme", reference, amount)
        shop.do(
            RecordSettlement(told, day, "2025-12-31", NOW_MS - 60_000, EUR, 2, amount, 600),
            OPERATOR,
        )


def _ask_the_network(shop: Shop) -> None:
    """What it agrees to, and what not."""
    agreed, declined = NetworkApproved("reference-1", "token-9", "full"), NetworkDeclined(DECLINED)
    (opened,) = shop.do(Intend(authorise(700), "acquirer")).entities
    transaction, *_ = shop.do(Conclude(opened, agreed), OPERATOR).entities
    refund = Refund(transaction, 100, "")
    capture = Capture(transaction, 400, None, "", None, None)
    for command, decision in ((capture, agreed), (refund, declined), (refund, agreed)):
        intent = next(
            EntityId(each.intent)
            for each in shop.do(Intend(command, "acquirer")).events
            if isinstance(each, Intended)
        )
        shop.do(Conclude(intent, decision), OPERATOR)


def line_of(entry: Entry) -> str:
    """An entry as a line of a journal that is kept."""
    return json.dumps(asdict(entry), ensure_ascii=False)


def entry_of(line: str) -> Entry:
    fields: dict[str, Any] = json.loads(line)
    postings = tuple(Posting(**posting) for posting in fields.pop("postings"))
    return Entry(**fields, postings=postings)


def outcome_of(books: Books) -> dict[str, Any]:
    """What books come to: heads with their accounts, and the documents of the wire."""
    heads = {book: head_of_row(row) for book, row in sorted(books.heads.items())}
    return {
        "heads": {
            book: {"seq": head.seq, "hash": head.hash, "accounts": dict(head.accounts)}
            for book, head in heads.items()
        },
        "documents": {
            f"{row.kind} {row.book} {row.id}": json.loads(row.document)
            for row in sorted(books.tables.values(), key=lambda row: (row.kind, row.book, row.id))
        },
        "keys": sorted(books.live_keys),
    }


def keep(books: Books, journal: Path) -> None:
    """Write the journal and what it comes to, beside each other; neither may be there."""
    with journal.with_suffix(".jsonl").open("x", encoding="utf-8") as file:
        file.writelines(f"{line_of(entry)}\n" for entry in books.log)
    with journal.with_suffix(".json").open("x", encoding="utf-8") as file:
        json.dump(outcome_of(books), file, ensure_ascii=False, indent=1)
        file.write("\n")


if __name__ == "__main__":
    keep(tell(), Path(sys.argv[1]))
