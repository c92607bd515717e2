"""Decisions on what the card network reports: disputes, their ends, frauds.

A dispute is open, then won or lost, once (T10). Opening takes its amount back from the captures,
first in first out, and charges the dispute fee; winning gives that very amount back, not the fee;
losing books nothing more.
"""

from tollgate.actors.ledger.book.case import Case, Decision
from tollgate.actors.ledger.book.decisions.transactions import in_funding
from tollgate.actors.ledger.law import lots
from tollgate.actors.ledger.law.commands import DecideDispute, OpenDispute, ReportFraud
from tollgate.actors.ledger.law.events import (
    DisputeLost,
    DisputeOpened,
    DisputeWon,
    FraudReported,
    Sum,
)
from tollgate.actors.ledger.law.money import Fee
from tollgate.actors.ledger.law.outcomes import Refused
from tollgate.actors.ledger.law.refusals import absent, constraint

REASON_MAX = 8  # of a fraud: the table of the requirements goes from 0 to 8


def open_dispute(case: Case, command: OpenDispute) -> Decision:
    transaction = case.transaction(command.transaction)
    if transaction is None:
        return absent(f"this merchant has no transaction {command.transaction}")
    if refused := transaction.refuse_dispute(command.amount):
        return refused
    funding = case.merchant.currency
    fee = in_funding(case.merchant.pricing.dispute, command.dispute_rate, funding, "dispute")
    if isinstance(fee, Refused):
        return fee
    takings = lots.take(transaction.lots, command.amount)
    dispute, line, own = case.ids(3)
    return (
        DisputeOpened(
            id=own,
            dispute=dispute,
            transaction=transaction.id,
            line=line,
            sum=Sum(transaction.currency, command.amount, funding, lots.total(takings)),
            takings=takings,
            fee=Fee(flat=fee[0]),
            fee_exchange=fee[1],
            reason_code=command.reason_code,
            reason_title=command.reason_title,
            due_ms=command.due_ms,
        ),
    )


def decide_dispute(case: Case, command: DecideDispute) -> Decision:
    dispute = case.dispute(command.dispute)
    if dispute is None:
        return absent(f"this merchant has no dispute {command.dispute}")
    if dispute.is_won is not None:
        outcome = "won" if dispute.is_won else "lost"
        return constraint(f"the dispute was {outcome} already: it is decided once")
    transaction = case.transaction(dispute.transaction)
    assert transaction is not None, "a dispute's transaction is in its book"
    line, own = case.ids(2)
    sum_ = Sum(
        transaction.currency,
        dispute.amount,
        case.merchant.currency,
        lots.total(dispute.takings),
    )
    decided = DisputeWon if command.is_won else DisputeLost
    return (decided(own, dispute.id, transaction.id, line, sum_),)


def report_fraud(case: Case, command: ReportFraud) -> Decision:
    transaction = case.transaction(command.transaction)
    if transaction is None:
        return absent(f"this merchant has no transaction {command.transaction}")
    if command.reason is not None and not 0 <= command.reason <= REASON_MAX:
        return constraint(
            f"{command.reason} is no reason: they go from 0 to {REASON_MAX}", "reason"
        )
    fraud, own = case.ids(2)
    return (FraudReported(own, fraud, transaction.id, command.reported_ms, command.reason),)
