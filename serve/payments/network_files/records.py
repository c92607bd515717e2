"""The records of the network's files, field by field (part D, Files of the network).

    disputes      reference, status (opened, won, lost); transaction, amount, currency, reasonCode,
                  reasonTitle, due
    frauds        reference, transaction; amount, currency, reason, reported
    settlements   reference, merchantId, day, currency, amount (negative: taken back)

`reference` is the network's own name of the record. A transaction is named by its `transactionId`,
or by `merchantId` and `transactionReference`, the network's reference of the authorisation. A
dispute that was told before needs no more than its reference and a status.
"""
# ruff: noqa: N815  (names are the files')

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Generic, Self, TypeVar

from pydantic import model_validator

from tollgate.actors.ledger.law.values import AMOUNT_MAX
from tollgate.serve.net.guarded_client import PUBLIC_ALONE
from tollgate.serve.payments.api.bodies import wire_types as wire
from tollgate.serve.payments.api.bodies.model_reader import RequestBody, read_model
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.rejections import BadRequest, FieldError
from tollgate.serve.payments.network_files.lines import FileProblem, read_lines
from tollgate.serve.payments.reference.tables import ReferenceData

REFERENCE_LENGTH_MAX = 128
# Of the lines that are wrong, so many are told.
PROBLEMS_TOLD_MAX = 20
_DIGITS_MAX = 16
FILE = "file"


class DisputeStatus(Enum):
    """How a dispute stands, by the network."""

    OPENED = "opened"
    WON = "won"
    LOST = "lost"


def _reference(value: object, reading: wire.Reading) -> str | FieldError:
    del reading
    why = f"must be the network's reference: 1 to {REFERENCE_LENGTH_MAX} printable ASCII characters"
    if not isinstance(value, str) or not 0 < len(value) <= REFERENCE_LENGTH_MAX:
        return FieldError("", why)
    is_fit = value.isascii() and value.isprintable() and value == value.strip()
    return value if is_fit else FieldError("", f"{why}, without blanks around them")


def _day(value: object, reading: wire.Reading) -> date | FieldError:
    del reading
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        day = None
    if day is None or day.isoformat() != value or day.year < 1970:
        return FieldError("", "must be a day such as 2026-02-28")
    return day


def _signed(value: object, reading: wire.Reading) -> int | FieldError:
    error = FieldError("", f"must be a whole number of minor units, at most {AMOUNT_MAX}")
    if reading.is_form and isinstance(value, str):
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS_MAX):
            return error
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > AMOUNT_MAX:
        return error
    return value


def _status(value: object, reading: wire.Reading) -> DisputeStatus | FieldError:
    del reading
    words = [each.value for each in DisputeStatus]
    if value not in words:
        return FieldError("", f"must be one of {', '.join(words)}")
    return DisputeStatus(value)


Reference = Annotated[str, wire.checked(_reference)]
Day = Annotated[date, wire.checked(_day)]
Signed = Annotated[int, wire.checked(_signed)]
Status = Annotated[DisputeStatus, wire.checked(_status)]


class TransactionRecord(RequestBody):
    """A record about a transaction."""

    reference: Reference
    transactionId: wire.Id | None = None
    merchantId: wire.Id | None = None
    transactionReference: Reference | None = None

    @property
    def transaction(self) -> str:
        """The transaction as it is named; empty without one."""
        if self.transactionReference is not None:
            return f"{self.merchantId} {self.transactionReference}"
        return self.transactionId or ""

    @model_validator(mode="after")
    def _is_named_once(self) -> Self:
        by_reference = (self.merchantId, self.transactionReference)
        given = [each for each in by_reference if each is not None]
        if given and (len(given) < len(by_reference) or self.transactionId is not None):
            why = "takes merchantId beside it, and no transactionId"
            raise wire.field_refusal(FieldError("transactionReference", why))
        return self


class DisputeRecord(TransactionRecord):
    """Its subject is the transaction with an amount of it: all three, or none of them."""

    status: Status = DisputeStatus.OPENED
    amount: wire.Amount | None = None
    currency: wire.CurrencyCode | None = None
    reasonCode: wire.DisputeReasonCode | None = None
    reasonTitle: wire.Text | None = None
    due: wire.Moment | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        subject = {
            "transactionId": self.transaction or None,
            "amount": self.amount,
            "currency": self.currency,
        }
        absent = [name for name, value in subject.items() if value is None]
        details = (self.reasonCode, self.reasonTitle, self.due)
        is_needed = self.status is DisputeStatus.OPENED or any(d is not None for d in details)
        if absent and (is_needed or len(absent) < len(subject)):
            raise wire.field_refusal(FieldError(absent[0], "is required"))
        return self


class FraudRecord(TransactionRecord):
    """`amount` and `currency`: of the purchase, compared with the transaction's; both or none."""

    amount: wire.Amount | None = None
    currency: wire.CurrencyCode | None = None
    reason: wire.FraudReason | None = None
    reported: wire.Moment | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not self.transaction:
            raise wire.field_refusal(FieldError("transactionId", "is required"))
        if (self.amount is None) is not (self.currency is None):
            absent = "amount" if self.amount is None else "currency"
            raise wire.field_refusal(FieldError(absent, "is required"))
        return self


class SettlementRecord(RequestBody):
    reference: Reference
    merchantId: wire.Id
    day: Day
    currency: wire.CurrencyCode
    amount: Signed


R = TypeVar("R", bound=RequestBody)


@dataclass(frozen=True, slots=True)
class NumberedRecord(Generic[R]):
    """A record, and the number of its line."""

    line: int
    content: R


def read_records(
    model: type[R], text: str, reference: ReferenceData
) -> Sequence[NumberedRecord[R]]:
    """The records of a file, all of them or none. Raises BadRequest."""
    try:
        lines = read_lines(text)
    except FileProblem as problem:
        raise BadRequest(FieldError(FILE, str(problem))) from None
    records: list[NumberedRecord[R]] = []
    problems: list[FieldError] = []
    for line in lines:
        body = Body(line.fields, is_form=line.is_text)
        reading = wire.Reading(reference, PUBLIC_ALONE, body.is_form)
        try:
            records.append(NumberedRecord(line.number, read_model(model, body, reading)))
        except BadRequest as refused:
            problems += [_placed(line.number, each) for each in refused.errors]
            if len(problems) >= PROBLEMS_TOLD_MAX:
                break
    if problems:
        raise BadRequest(*problems[:PROBLEMS_TOLD_MAX])
    return records


def _placed(line: int, error: FieldError) -> FieldError:
    where = f"{error.field} " if error.field else ""
    return FieldError(FILE, f"line {line}: {where}{error.message}")
