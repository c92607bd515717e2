"""A file of the network told again changes nothing, whatever is in it and however it is cut."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.ledger.auditor import audit, audit_replay
from tests.support.ledger.books import EUR, NOW_MS, Shop, open_shop
from tollgate.actors.ledger.book.machine import OrderEffect
from tollgate.actors.ledger.law.commands import (
    Command,
    OpenDispute,
    RecordSettlement,
    ReportFraud,
)
from tollgate.actors.ledger.law.notices import NoticeKind, notice, settled_day_id
from tollgate.actors.ledger.law.values import OPERATOR, EntityId

DAY = "2025-12-31"
RECORDS = st.lists(
    st.tuples(st.sampled_from(NoticeKind), st.integers(0, 3), st.integers(1, 500)), max_size=12
)


def command(shop: Shop, transaction: EntityId, record: tuple[NoticeKind, int, int]) -> Command:
    kind, number, amount = record
    told = notice(kind, "acme", f"R-{number}", amount)
    match kind:
        case NoticeKind.DISPUTE:
            return OpenDispute(transaction, amount, 1, "", NOW_MS, None, told)
        case NoticeKind.FRAUD:
            return ReportFraud(transaction, None, amount % 9, told)
        case NoticeKind.SETTLEMENT:
            day = settled_day_id(shop.book, DAY, EUR, 2)
            return RecordSettlement(told, day, DAY, NOW_MS, EUR, 2, amount, 0)


@settings(max_examples=40, deadline=None)
@given(records=RECORDS, again=st.integers(0, 12))
def test_a_file_told_again_is_told_once(
    records: list[tuple[NoticeKind, int, int]], again: int
) -> None:
    """The whole file after a part of it: what a run leaves that ended half-way."""
    shop = open_shop(EUR)
    transaction = shop.authorised(1_000)
    shop.capture(transaction, 1_000)
    commands = [command(shop, transaction, record) for record in records]
    booked: dict[tuple[NoticeKind, int], int] = {}
    for (kind, number, amount), each in zip(
        [*records[:again], *records], [*commands[:again], *commands], strict=True
    ):
        step = shop.books.attempt(shop.book, each, OPERATOR)
        first = booked.get((kind, number))
        assert isinstance(step, OrderEffect) or first is None or first != amount
        if isinstance(step, OrderEffect):
            assert bool(step.events) is (first is None)
            assert booked.setdefault((kind, number), amount) == amount
    disputed = sum(n for (kind, _), n in booked.items() if kind is NoticeKind.DISPUTE)
    settled = [n for (kind, _), n in booked.items() if kind is NoticeKind.SETTLEMENT]
    (document,) = shop.books.documents("transaction", shop.book)
    assert document["disputedAmount"] == disputed
    told = [each["settled"] for each in shop.books.documents("settlement", shop.book)]
    assert sorted(told)[-1:] == ([sum(settled)] if settled else [])
    audit(shop.books)
    audit_replay(shop.books)
