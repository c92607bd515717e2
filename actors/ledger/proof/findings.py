"""The findings of a verification, and its report."""

from collections.abc import Iterable
from dataclasses import dataclass, field

# Of one broken thing, many follow: the first ones tell.
FINDINGS_SHOWN_MAX = 100

# (account, currency, minor units)
AccountTotal = tuple[str, str, int]


@dataclass(slots=True)
class Findings:
    """One line each; beyond the maximum they are only counted."""

    shown: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, line: str) -> None:
        self.count += 1
        if len(self.shown) < FINDINGS_SHOWN_MAX:
            self.shown.append(line)


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """`totals`: the trial balance. `findings`: what is wrong, of `findings_count` in all.
    `anchored`: the first and the last day of the anchors elsewhere that could be believed."""

    books: int
    entries: int
    totals: tuple[AccountTotal, ...]
    findings: tuple[str, ...]
    findings_count: int
    anchored: tuple[str, str] | None = None

    @property
    def is_sound(self) -> bool:
        return self.findings_count == 0


def strayed(totals: Iterable[AccountTotal]) -> list[str]:
    """The sums of postings without an entry, which are in no balance (M8)."""
    return [
        f"postings without an entry hold {amount} {currency} in the account {account}, and are not "
        "counted: run `tollgate ledger verify` (M8)"
        for account, currency, amount in totals
    ]


def unbalanced(totals: tuple[AccountTotal, ...]) -> list[str]:
    """Currencies in which all accounts of all books together are not zero (M8)."""
    sums: dict[str, int] = {}
    for _, currency, amount in totals:
        sums[currency] = sums.get(currency, 0) + amount
    return [
        f"all accounts together hold {amount} {currency}, not 0 (M8)"
        for currency, amount in sums.items()
        if amount
    ]
