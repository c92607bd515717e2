"""Lines as CSV (RFC 4180), safe to open in a spreadsheet, and as NDJSON.

Both name two currencies: `currency` is that of `amount`, `fundingCurrency` that of `balance` and
`fee`. A line by itself leaves the latter to its merchant; a file of lines may be read without it.
New columns go to the end: there are readers that count them.

A spreadsheet runs what begins with = + - @ or a tab as a formula. Texts that do get an apostrophe
in front; numbers are ours and stay numbers.
"""

import csv
import io

from msgspec import Struct, field
from msgspec.json import Decoder

from tollgate.actors.ledger.law.values import Currency

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
COLUMNS = (
    *("id", "created", "kind", "transactionId", "currency", "amount"),
    *("balance", "fee", "description", "test", "fundingCurrency"),
)
KINDS = ("capture", "refund", "dispute", "payout")


class _Sum(Struct):
    currency: str
    amount: int


class _Line(Struct):
    id: str
    created: str
    amount: _Sum
    balance: int
    fee: int
    test: bool
    transaction: str = field(name="transactionId", default="")
    description: str = ""
    capture: bool = False
    refund: bool = False
    dispute: bool = False
    payout: bool = False
    won: bool = False
    lost: bool = False

    @property
    def kind(self) -> str:
        """In the words of a line: `dispute won`."""
        name = next(kind for kind in KINDS if getattr(self, kind))
        return name + (" won" if self.won else " lost" if self.lost else "")


_decode = Decoder(_Line).decode


def csv_row(document: str, funding: Currency) -> bytes:
    """The document of a line as a row."""
    line = _decode(document)
    return _row(
        (
            *(line.id, line.created, line.kind, line.transaction),
            *(line.amount.currency, line.amount.amount, line.balance, line.fee),
            *(without_formula(line.description), "yes" if line.test else "no", funding),
        )
    )


def ndjson_row(document: str, funding: Currency) -> bytes:
    """The document of a line with what its merchant is funded in."""
    named = document.removesuffix("}") + f',"fundingCurrency":"{funding}"}}\n'
    return named.encode()


def without_formula(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _row(cells: tuple[object, ...]) -> bytes:
    row = io.StringIO()
    csv.writer(row).writerow(cells)
    return row.getvalue().encode()


CSV_HEADER = _row(COLUMNS)
