"""The table of processing errors, by numeric code, with advice (part C)."""

from collections.abc import Mapping
from dataclasses import dataclass

from tollgate.actors.ledger.law.values import Advice, ProcessingError
from tollgate.serve.payments.reference.data_file import DataFields, DataNode


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """A processing error, with its advice. `is_usual_for_recurring`: also happens to payments that
    a server makes."""

    error: ProcessingError
    is_usual_for_recurring: bool


@dataclass(frozen=True, slots=True)
class ProcessingErrors:
    """The processing errors by code."""

    version: int
    by_code: Mapping[int, ErrorEntry]

    def __getitem__(self, code: int) -> ErrorEntry:
        return self.by_code[code]

    def error(self, code: int) -> ProcessingError:
        """The error with this code, which must be one of the table."""
        return self.by_code[code].error


def read_processing_errors(root: DataNode, needed: frozenset[int]) -> ProcessingErrors:
    """The table of `processing-errors.yaml`; the codes in `needed` must be there, because the code
    gives them. Raises DataFileError."""
    fields = root.fields(("version", "advice", "errors"))
    later, never = _advice(fields["advice"])
    table: dict[int, ErrorEntry] = {}
    for key, node in fields["errors"].pairs():
        if not key.isdecimal() or not 0 < len(key) <= 3:
            node.refuse("is not a code such as 12")
        table[int(key)] = _facts(int(key), node, later, never)
    if missing := sorted(needed - table.keys()):
        fields["errors"].refuse(f"code {missing[0]} is missing")
    return ProcessingErrors(fields["version"].integer(), table)


def _advice(node: DataNode) -> tuple[Advice, Advice]:
    """Advice to try again later, and never to."""
    fields = node.fields(("retry_after_hours", "attempts_max", "never", "later"))
    hours, attempts = (_positive(fields, name) for name in ("retry_after_hours", "attempts_max"))
    return (
        Advice(hours, attempts, fields.text("later")),
        Advice(0, 0, fields.text("never")),
    )


def _positive(fields: DataFields, name: str) -> int:
    if (number := fields[name].integer()) < 1:
        fields[name].refuse("is not at least 1")
    return number


def _facts(code: int, node: DataNode, later: Advice, never: Advice) -> ErrorEntry:
    fields = node.fields(("message", "text"), ("client", "merchant", "recurring", "retry"))
    retry = fields.text("retry") or "later"
    if retry not in ("never", "later"):
        fields["retry"].refuse(f"{retry!r} is neither never nor later")
    error = ProcessingError(
        code,
        fields.text("message"),
        fields.is_set("client"),
        fields.is_set("merchant"),
        fields.text("text"),
        never if retry == "never" else later,
    )
    if not (error.is_client or error.is_merchant):
        node.refuse("is nobody's fault: set client or merchant")
    return ErrorEntry(error, fields.is_set("recurring"))
