"""The outcome of a file: of each record, and what is told of them all. There are no more findings
than records."""

from dataclasses import dataclass, field
from enum import StrEnum


class Mismatch(StrEnum):
    """The reasons why a record was not booked."""

    UNKNOWN_TRANSACTION = "unknown transaction"
    UNKNOWN_MERCHANT = "unknown merchant"
    UNKNOWN_REFERENCE = "unknown reference"
    WRONG_CURRENCY = "wrong currency"
    AMOUNT_TOO_HIGH = "amount too high"
    OTHER_CONTENT = "other content"
    DECIDED_OTHERWISE = "decided otherwise"
    DAY_NOT_OVER = "day not over"
    REFUSED = "refused"


class Effect(StrEnum):
    """What a record did that was no finding."""

    BOOKED = "booked"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Finding:
    """A record that was not booked, and why. Other records do not mind."""

    problem: Mismatch
    message: str


@dataclass(frozen=True, slots=True)
class SettledDifference:
    """A day of a merchant on which the network says that it paid something else than the books
    expect; amounts in minor units of `currency`."""

    merchant: str
    day: str
    currency: str
    settled: int
    expected: int


@dataclass(slots=True)
class FileReport:
    """What became of a file's records. `is_dry`: nothing was booked."""

    is_dry: bool
    records: int = 0
    counts: dict[Effect, int] = field(default_factory=lambda: dict.fromkeys(Effect, 0))
    findings: list[dict[str, object]] = field(default_factory=list)
    differences: dict[tuple[str, str, str], SettledDifference] = field(default_factory=dict)

    def note(self, line: int, reference: str, outcome: Effect | Finding) -> None:
        """One more record."""
        self.records += 1
        if isinstance(outcome, Effect):
            self.counts[outcome] += 1
            return
        self.findings.append(
            {
                "line": line,
                "reference": reference,
                "problem": outcome.problem.value,
                "message": outcome.message,
            }
        )

    def compare(self, day: SettledDifference) -> None:
        """Keeps the latest comparison of a day, if there is a difference."""
        key = (day.merchant, day.day, day.currency)
        self.differences.pop(key, None)
        if day.settled != day.expected:
            self.differences[key] = day

    def document(self) -> dict[str, object]:
        """As it is answered."""
        return {
            "dryRun": self.is_dry,
            "records": self.records,
            **{effect.value: count for effect, count in self.counts.items()},
            "findings": self.findings,
            "differences": [
                {
                    "merchantId": each.merchant,
                    "day": each.day,
                    "currency": each.currency,
                    "settled": each.settled,
                    "expected": each.expected,
                    "difference": each.settled - each.expected,
                }
                for each in self.differences.values()
            ],
        }
