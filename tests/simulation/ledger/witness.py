"""What the shops were told, against what is in the books: exactly once, durable, and never a lie.

Done        it was durable when it was told (C4); its body is the stored one, byte for byte (C2)
Refused     it never happened, and between asking and telling there was a moment at which the
            books did not allow it: so no answer came from an outdated memory (C1, C6)
Busy        it never happened, unless it was asked again
Indefinite  it happened once or not at all, and asking again has told which
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from tests.simulation.ledger.auditor import Account, BookAuditor
from tests.simulation.ledger.tables_audit import check_replay, check_tables
from tests.simulation.ledger.world import Deed, Testimony, run
from tests.support.ledger.memory_store import MemoryTables
from tollgate.actors.ledger.law.commands import (
    Capture,
    DecideDispute,
    OpenDispute,
    Order,
    Refund,
    Void,
)
from tollgate.actors.ledger.law.outcomes import Done, Refusal, RefusalReason, TurnedAway
from tollgate.actors.ledger.storage.store import Fenced, OutcomeUnknown

# Few captures of such amounts fill a book.
HUGE = 10**12
NOT_HERE = (RefusalReason.NOT_FOUND, RefusalReason.PROCESSING)


def check(testimony: Testimony) -> None:
    """All there is to check of a run. Raises AssertionError with what does not hold."""
    assert not testimony.accidents, testimony.accidents[0]
    for end in testimony.ends:
        is_fenced = isinstance(end.error, Fenced) and end.was_replaced
        assert is_fenced or isinstance(end.error, OutcomeUnknown), f"a shard ended by {end!r}"
    _check_epochs(testimony.disk.log)
    orders = {deed.order.operation: deed.order for deed in testimony.deeds}
    tables = testimony.disk.tables
    books: dict[str, BookAuditor] = {}
    for book, entries in tables.entries.items():
        auditor = books[book] = BookAuditor(book, orders)
        for entry in entries:
            auditor.read(entry)
        auditor.finish()
    check_tables(list(books.values()), tables)
    check_replay(tables)
    _check_operations(tables, books, orders)
    _check_keys(tables, testimony.deeds)
    first: dict[str, Deed] = {}
    last: dict[str, Deed] = {}
    for deed in testimony.deeds:
        first.setdefault(deed.order.operation, deed)
        last[deed.order.operation] = deed
    for operation, deed in ((deed.order.operation, deed) for deed in testimony.deeds):
        # Asking again with the same operation may tell what was decided the first time.
        deed.asked_seq = first[operation].asked_seq
        _check_told(deed, tables, books[deed.order.book], is_last=last[operation] is deed)


def _check_epochs(log: Iterable[tuple[str, int]]) -> None:
    newest: Counter[str] = Counter()
    for shard, epoch in log:
        assert epoch >= newest[shard], f"C6: epoch {epoch} commits after epoch {newest[shard]}"
        newest[shard] = epoch


def _check_operations(
    tables: MemoryTables, books: Mapping[str, BookAuditor], orders: Mapping[str, Order]
) -> None:
    """An operation's row is there exactly when its entries are, if it has any."""
    for operation in tables.operations:
        assert operation in orders, f"nobody ordered {operation}"
    for auditor in books.values():
        for operation, events in auditor.operations.items():
            assert operation in tables.operations, f"C2: {operation} left no row"
            kinds = [event["event"] for event in events]
            assert len(kinds) == len(set(kinds)), f"C2: {operation} happened twice: {kinds}"


def _check_keys(tables: MemoryTables, deeds: Iterable[Deed]) -> None:
    """One effect per key, and one body for whoever uses it for the same request."""
    effects: Counter[tuple[str, str, str]] = Counter()
    for row in tables.operations.values():
        if row.key:
            effects[row.app, row.book, row.key] += 1
    for key, count in effects.items():
        assert count == 1, f"C2: {count} effects of {key}"
    bodies: dict[tuple[str, str, str, str], tuple[int, bytes]] = {}
    for deed in deeds:
        order, answer = deed.order, deed.answer
        if isinstance(answer, Done) and order.idempotency_key:
            request = (order.origin.app, order.book, order.idempotency_key, order.fingerprint)
            told = bodies.setdefault(request, (answer.kind, answer.body))
            assert told == (answer.kind, answer.body), f"C2: two answers for {request}"


def _check_told(deed: Deed, tables: MemoryTables, book: BookAuditor, *, is_last: bool) -> None:
    order, answer = deed.order, deed.answer
    row = tables.operations.get(order.operation)
    match answer:
        case Done():
            assert deed.was_durable, f"C4: {order.operation} was told before it was durable"
            if row is None:
                row = tables.by_key.get((order.origin.app, order.book, order.idempotency_key))
                assert answer.is_replay, f"C2: {order.operation} was done by another, unmarked"
            assert row is not None, f"C4: {order.operation} was told and is lost"
            assert (answer.kind, answer.body) == (row.done, row.body), "C2: byte for byte"
        case Refusal(kind=RefusalReason.KEY_REUSED):
            key = (order.origin.app, order.book, order.idempotency_key)
            assert tables.by_key[key].fingerprint != order.fingerprint, "C2: it was the same one"
            assert row is None, f"T8: {order.operation} was refused and happened"
        case Refusal():
            assert row is None, f"T8: {order.operation} was refused and happened"
            _check_reason(deed, answer, book)
        case TurnedAway() if is_last:
            assert row is None, f"F11: {order.operation} was turned away and happened"


def _check_reason(deed: Deed, refused: Refusal, book: BookAuditor) -> None:
    """There was a moment between asking and telling when this was the right answer."""
    order = deed.order
    if refused.kind is RefusalReason.FORBIDDEN:
        since = [m for seq, m in book.membership if seq <= deed.asked_seq][-1:]
        moments = since + [m for seq, m in book.membership if deed.asked_seq < seq <= deed.told_seq]
        is_right = any(order.origin.app not in members for members in moments)
        assert is_right, f"A2: {order.origin.app} had access all the time"
        return
    if refused.kind in NOT_HERE:
        return
    match order.command:
        case Capture() | Refund() | Void() | OpenDispute():
            account = book.transactions[order.command.transaction]
            is_beyond_json = refused.code == 22 and order.command.amount >= HUGE
            assert is_beyond_json or _is_refused(order, account, deed), (
                f"C1, C6: {order.operation} was refused, and was allowed all the time: {refused}"
            )
        case DecideDispute(dispute=dispute):
            decided = book.disputes[dispute].decided
            assert 0 < decided <= deed.told_seq, "T10: it was not decided by then"


def _is_refused(order: Order, account: Account, deed: Deed) -> bool:
    command = order.command
    assert isinstance(command, Capture | Refund | Void | OpenDispute)
    if not account.is_successful:
        return True
    if isinstance(command, Capture) and command.currency not in (None, account.currency):
        return True
    since = [moment for moment in account.history if moment[0] <= deed.asked_seq][-1:]
    moments = since + [
        moment for moment in account.history if deed.asked_seq < moment[0] <= deed.told_seq
    ]
    is_of_pending = isinstance(command, Capture | Void)
    return any(
        command.amount > (pending if is_of_pending else refundable)
        for _, pending, refundable in moments
    )


def judge(seed: int) -> Testimony:
    """The run of a seed, checked. Raises AssertionError that says how to see it again."""
    try:
        testimony = run(seed)
        check(testimony)
    except AssertionError as error:
        raise AssertionError(f"seed {seed} (scripts/simulate --seed {seed}): {error}") from error
    return testimony
