"""The transition table of a transaction: what is allowed, what it does, and every refusal."""

import pytest
from msgspec.structs import replace

from tests.support.ledger.books import (
    ABSENT,
    DECLINED,
    DKK,
    EUR,
    FREE,
    NOW_MS,
    Books,
    Shop,
    open_shop,
)
from tollgate.actors.ledger.law.commands import (
    Capture,
    Command,
    DecideDispute,
    OpenDispute,
    Refund,
    Void,
)
from tollgate.actors.ledger.law.outcomes import ErrorCode, Refusal, RefusalReason
from tollgate.actors.ledger.law.transaction import TRAIL_LENGTH_MAX, ActionKind
from tollgate.actors.ledger.law.values import EntityId


@pytest.fixture
def shop() -> Shop:
    return open_shop(pricing=FREE)


def capture(transaction: EntityId, amount: int) -> Capture:
    return Capture(transaction, amount, None, "", None, None)


def dispute(transaction: EntityId, amount: int) -> OpenDispute:
    return OpenDispute(transaction, amount, 1, "", NOW_MS, None)


def amounts(shop: Shop, transaction: EntityId) -> tuple[int, ...]:
    """P, C, R, V, D."""
    t = shop.transaction(transaction)
    return t.pending, t.captured, t.refunded, t.voided, t.disputed


def test_the_life_of_a_transaction(shop: Shop) -> None:
    transaction = shop.authorised(300)
    assert amounts(shop, transaction) == (300, 0, 0, 0, 0)
    shop.capture(transaction, 200)
    assert amounts(shop, transaction) == (100, 200, 0, 0, 0)
    shop.do(Refund(transaction, 120, ""))
    assert amounts(shop, transaction) == (100, 200, 120, 0, 0)
    shop.do(Void(transaction, 40))
    assert amounts(shop, transaction) == (60, 200, 120, 40, 0)
    won = shop.disputed(transaction, 50)
    lost = shop.disputed(transaction, 30)
    assert amounts(shop, transaction) == (60, 200, 120, 40, 80)
    assert shop.balance == 0
    shop.do(DecideDispute(won, is_won=True))
    shop.do(DecideDispute(lost, is_won=False))
    assert amounts(shop, transaction) == (60, 200, 120, 40, 30)
    assert shop.balance == 50
    shop.capture(transaction, 60)
    shop.do(Refund(transaction, 110, ""))
    assert amounts(shop, transaction) == (0, 260, 230, 40, 30)
    assert shop.balance == 0
    assert [action.kind for action in shop.transaction(transaction).trail] == [
        ActionKind.CAPTURE,
        ActionKind.REFUND,
        ActionKind.VOID,
        ActionKind.DISPUTE,
        ActionKind.DISPUTE,
        ActionKind.DISPUTE_WON,
        ActionKind.DISPUTE_LOST,
        ActionKind.CAPTURE,
        ActionKind.REFUND,
    ]


INVALID = (ErrorCode.INVALID_AMOUNT, "is no amount")
TOO_MUCH = (ErrorCode.AMOUNT_TOO_HIGH, "is more than the")


@pytest.mark.parametrize("act", [capture, Void])
@pytest.mark.parametrize(
    ("amount", "error"), [(0, INVALID), (-1, INVALID), (101, TOO_MUCH), (2**53, TOO_MUCH)]
)
def test_what_is_pending_may_be_captured_or_voided(
    shop: Shop, act: type[Void], amount: int, error: tuple[int, str]
) -> None:
    transaction = shop.authorised(300)
    shop.capture(transaction, 150)
    shop.do(Void(transaction, 50))
    refused = shop.refusal(act(transaction, amount))
    assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, "amount")
    assert refused.code == error[0]
    assert error[1] in refused.message
    shop.do(act(transaction, 100))


@pytest.mark.parametrize("is_won", [None, False, True])
@pytest.mark.parametrize("is_dispute", [False, True])
@pytest.mark.parametrize(("beyond", "error"), [(None, INVALID), (1, TOO_MUCH)])
def test_what_is_captured_may_be_refunded_or_disputed_once(
    shop: Shop, is_dispute: bool, is_won: bool | None, beyond: int | None, error: tuple[int, str]
) -> None:
    transaction = shop.captured(300)
    shop.do(Refund(transaction, 100, ""))
    opened = shop.disputed(transaction, 80)
    if is_won is not None:
        shop.do(DecideDispute(opened, is_won))
    left = 200 if is_won else 120

    def act(amount: int) -> Command:
        return dispute(transaction, amount) if is_dispute else Refund(transaction, amount, "")

    refused = shop.refusal(act(0 if beyond is None else left + beyond))
    assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, "amount")
    assert refused.code == error[0]
    assert error[1] in refused.message
    shop.do(act(left))
    assert shop.refusal(act(1)).code == ErrorCode.AMOUNT_TOO_HIGH


def test_what_is_not_captured_is_not_refunded(shop: Shop) -> None:
    transaction = shop.authorised(300)
    assert "more than the 0 that" in shop.refusal(Refund(transaction, 1, "")).message
    assert "more than the 0 that" in shop.refusal(dispute(transaction, 1)).message


def test_a_capture_in_another_currency_is_refused(shop: Shop) -> None:
    transaction = shop.authorised(300)
    refused = shop.refusal(Capture(transaction, 300, DKK, "", None, None))
    assert (refused.field, refused.code) == ("currency", ErrorCode.INVALID_CURRENCY)
    assert refused.message == "the transaction is in EUR, not in DKK"
    shop.do(Capture(transaction, 300, EUR, "", None, None))


@pytest.mark.parametrize(
    "act", [capture, Void, lambda transaction, amount: Refund(transaction, amount, "")]
)
def test_a_failed_attempt_allows_nothing(shop: Shop, act: type[Void]) -> None:
    transaction = shop.authorised(300, error=DECLINED)
    assert amounts(shop, transaction) == (0, 0, 0, 0, 0)
    assert shop.transaction(transaction).amount == 300
    refused = shop.refusal(act(transaction, 1))
    assert refused.kind is RefusalReason.CONSTRAINT
    assert "was not successful (Declined by the cardholder's bank)" in refused.message
    assert shop.refusal(dispute(transaction, 1)).kind is RefusalReason.CONSTRAINT


@pytest.mark.parametrize("is_won", [False, True])
def test_a_dispute_is_decided_once(shop: Shop, is_won: bool) -> None:
    opened = shop.disputed(shop.captured(300), 300)
    shop.do(DecideDispute(opened, is_won))
    for again in (False, True):
        refused = shop.refusal(DecideDispute(opened, again))
        assert refused.kind is RefusalReason.CONSTRAINT
        assert ("was won already" if is_won else "was lost already") in refused.message


@pytest.mark.parametrize(
    "command",
    [
        capture(ABSENT, 1),
        Refund(ABSENT, 1, ""),
        Void(ABSENT, 1),
        dispute(ABSENT, 1),
        DecideDispute(ABSENT, is_won=True),
    ],
)
def test_what_is_not_there_is_not_found(shop: Shop, command: Command) -> None:
    refused = shop.refusal(command)
    assert refused.kind is RefusalReason.NOT_FOUND
    assert ABSENT in refused.message


def test_other_books_are_not_seen(shop: Shop) -> None:
    other = open_shop(books=shop.books)
    transaction = other.captured(300)
    opened = other.disputed(transaction, 100)
    commands: list[Command] = [Refund(transaction, 1, ""), DecideDispute(opened, is_won=True)]
    for command in commands:
        assert shop.refusal(command).kind is RefusalReason.NOT_FOUND
        other.do(command)


def test_an_id_of_another_kind_is_not_found(shop: Shop) -> None:
    transaction = shop.captured(300)
    opened = shop.disputed(transaction, 100)
    (line, _) = shop.lines
    for wrong in (opened, EntityId(line["id"])):
        assert shop.refusal(Refund(wrong, 1, "")).kind is RefusalReason.NOT_FOUND
    assert shop.refusal(DecideDispute(transaction, True)).kind is RefusalReason.NOT_FOUND


def test_a_trail_has_an_end_for_all_but_disputes(shop: Shop) -> None:
    transaction = shop.authorised(3)
    shop.capture(transaction, 2)
    (action,) = shop.transaction(transaction).trail
    almost = replace(shop.transaction(transaction), trail=(action,) * (TRAIL_LENGTH_MAX - 1))
    full = replace(almost, trail=(action,) * TRAIL_LENGTH_MAX)
    assert (
        almost.refuse_capture(1, None) is almost.refuse_void(1) is almost.refuse_refund(1) is None
    )
    for refused in (full.refuse_capture(1, None), full.refuse_void(1), full.refuse_refund(1)):
        assert isinstance(refused, Refusal)
        assert "trail is full: 1000 actions" in refused.message
    assert full.refuse_dispute(1) is None


def test_a_clock_that_goes_back_leaves_the_trail_in_order() -> None:
    books = Books()
    shop = open_shop(books=books)
    transaction = shop.authorised(300)
    shop.capture(transaction, 100)
    books.now_ms -= 3_600_000
    shop.capture(transaction, 100)
    first, second = shop.transaction(transaction).trail
    assert second.at_ms > first.at_ms > NOW_MS
