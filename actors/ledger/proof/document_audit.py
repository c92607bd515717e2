"""The agreement of a book's rows, read off the documents of the wire (M1, M2).

M1  a line about a transaction is told alike by the newest entry of its trail, and the other way
    round: an entry of the trail that moved money has its line, and no other has the same
M2  the merchant's balance is the sum of its lines, in its document as on its account
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct, field
from msgspec.json import Decoder

from tollgate.actors.ledger.book.documents import moment
from tollgate.actors.ledger.law.accounts import merchant_balance
from tollgate.actors.ledger.law.rows import EntityRow
from tollgate.actors.ledger.proof.table_rebuild import Replayed


class _Line(Struct):
    id: str
    balance: int
    transaction: str = field(name="transactionId", default="")


class _TrailEntry(Struct):
    created: str
    balance: int
    line: str = field(name="lineId", default="")
    void: bool = False


class _Transaction(Struct):
    id: str
    trail: tuple[_TrailEntry, ...]


class _Merchant(Struct):
    balance: int


_decode_line = Decoder(_Line).decode
_decode_transaction = Decoder(_Transaction).decode
_decode_merchant = Decoder(_Merchant).decode


class BookAudit:
    """Of one book, entry by entry."""

    def __init__(self) -> None:
        self._balance = 0

    def check(self, made: Replayed) -> Iterator[str]:
        """The faults of what an entry made."""
        for row in made.overwritten:
            yield f"{row.kind} {row.id} takes the place of what an earlier entry wrote (M1)"
        lines = [_decode_line(row.document) for row in _of_kind(made.rows, "line")]
        moves = _moves(made)
        self._balance += sum(line.balance for line in lines)
        for line in lines:
            if line.transaction and moves.pop(line.id, None) != (line.transaction, line.balance):
                yield f"line {line.id} is not what the trail of {line.transaction} says (M1)"
        for line_id, (transaction, _) in moves.items():
            yield f"the trail of {transaction} moves money without its line {line_id!r} (M1)"
        for row in _of_kind(made.rows, "merchant"):
            if (shown := _decode_merchant(row.document).balance) != self._balance:
                yield f"the balance is {shown}, the sum of the lines is {self._balance} (M2)"
        account = merchant_balance(made.head.accounts)
        if account != self._balance:
            yield f"the account holds {account}, the sum of the lines is {self._balance} (M2)"


def _moves(made: Replayed) -> dict[str, tuple[str, int]]:
    """By line: (transaction, balance) of the entries that this one added to trails."""
    moves = {}
    for row in _of_kind(made.rows, "transaction"):
        transaction = _decode_transaction(row.document)
        newest = transaction.trail[-1] if transaction.trail else None
        # Times rise with entries, so this one's is nobody else's (F13).
        if newest and newest.created == moment(made.entry.at_ms) and not newest.void:
            moves[newest.line] = (transaction.id, newest.balance)
    return moves


def _of_kind(rows: Sequence[EntityRow], kind: str) -> list[EntityRow]:
    return [row for row in rows if row.kind == kind and not row.is_deleted]
