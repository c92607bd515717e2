"""The invariants of every step, asserted where it is cheap. A step that would break one is not
taken: the shard refuses that order alone, before anything of it is written.

    the entries follow each other in seq, time and id             F13, L4
    postings of each entry sum up to zero per currency            M4
    a balance is what it was and its postings                     M2
    A = P + C + V, nothing below zero; a failed attempt is empty  T1
    R + D <= C, and the lots hold what is left                    T2, M7
    of a transaction only what may change has changed             T3, T4
"""

from collections.abc import Sequence

from tollgate.actors.ledger.book.case import Entities
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.law.rows import Entry, Posting
from tollgate.actors.ledger.law.transaction import Transaction


def check_invariants(
    before: Head, loaded: Entities, after: Head, changed: Entities, entries: Sequence[Entry]
) -> None:
    """Assert the invariants of a step that led from `before` and `loaded` to `after` and
    `changed`."""
    seq, at_ms = before.seq, before.at_ms
    for entry in entries:
        seq += 1
        assert entry.seq == seq, "entries are numbered without a gap"
        assert entry.at_ms > at_ms, "entries have times that rise"
        at_ms = entry.at_ms
        if entry.postings:
            check_balanced(entry.postings)
    assert (after.seq, after.at_ms) == (seq, at_ms), "the head is that of the last entry"
    if entries:
        assert after.last_id > before.last_id, "ids rise"
        assert after.hash == entries[-1].hash, "the head carries the hash of the last entry"
    if after.accounts is not before.accounts:
        _check_accounts(before, after, entries)
    for entity in changed.values():
        if isinstance(entity, Transaction):
            check_amounts(entity)
            earlier = loaded.get(entity.id)
            if isinstance(earlier, Transaction):
                _check_growth(earlier, entity)


def check_balanced(postings: Sequence[Posting]) -> None:
    """M4."""
    sums: dict[str, int] = {}
    for posting in postings:
        sums[posting.currency] = sums.get(posting.currency, 0) + posting.amount
    assert not any(sums.values()), "postings of an entry sum up to zero per currency"


def _check_accounts(before: Head, after: Head, entries: Sequence[Entry]) -> None:
    balances = dict(before.accounts)
    for entry in entries:
        for posting in entry.postings:
            account = f"{posting.account}:{posting.currency}"
            balances[account] = balances.get(account, 0) + posting.amount
    assert balances == after.accounts, "a balance is what it was and its postings"


def check_amounts(transaction: Transaction) -> None:
    """T1, T2, and the lots."""
    parts = (transaction.pending, transaction.captured, transaction.voided)
    taken = (transaction.refunded, transaction.disputed)
    assert min(parts) >= 0 <= min(taken), "no amount is below zero"
    if transaction.is_successful:
        assert sum(parts) == transaction.amount > 0, "A = P + C + V"
    else:
        assert not any((*parts, *taken)), "a failed attempt moves nothing"
        assert not transaction.trail, "a failed attempt has no trail"
    assert sum(taken) <= transaction.captured, "R + D <= C"
    left = 0
    for lot in transaction.lots:
        assert lot.left >= 0 <= lot.left_worth, "no lot is below zero"
        assert lot.left or not lot.left_worth, "an empty lot is worth nothing"
        left += lot.left
    assert left == transaction.refundable, "the lots hold what may be refunded"


def _check_growth(before: Transaction, after: Transaction) -> None:
    """T3, and T4 as far as it is cheap: the trail only grows, in the order of time."""
    assert after.pending <= before.pending, "P never increases"
    assert after.captured >= before.captured, "C never decreases"
    assert after.refunded >= before.refunded, "R never decreases"
    assert after.voided >= before.voided, "V never decreases"
    assert after.amount == before.amount, "A never changes"
    grown = len(after.trail) - len(before.trail)
    assert grown in (0, 1), "one action at a time"
    if grown and before.trail:
        assert after.trail[-1].at_ms >= before.trail[-1].at_ms, "the trail is in order"
