"""Decisions on what the card network reports: disputes, their ends, frauds.

A dispute is open, then won or lost, once (T10). Opening takes its amount back from the captures,
first in first out, and charges the dispute fee; winning gives that very amount back, not the fee;
losing books nothing more.
"""

from msgspec import UNSET

from tollgate.actors.ledger.book.case import BookDecision, Case
from tollgate.actors.ledger.book.decisions.notices import decide_if_told_before
from tollgate.actors.ledger.book.decisions.transactions import in_funding
from tollgate.actors.ledger.book.entities import Dispute
from tollgate.actors.ledger.law import lots
from tollgate.actors.ledger.law.commands import DecideDispute, OpenDispute, ReportFraud
from tollgate.actors.ledger.law.events import (
    DisputeLost,
    DisputeOpened,
    DisputeWon,
    FraudReported,
)
from tollgate.actors.ledger.law.money import Fee
from tollgate.actors.ledger.law.outcomes import Refusal, absent, constraint
from tollgate.actors.ledger.law.transaction import Transaction

REASON_MAX = 8  # of a fraud (part B, Fraud report)


def decide_dispute_opening(case: Case, command: OpenDispute) -> BookDecision:
    told = decide_if_told_before(case, command.notice)
    if told is not None:
        return told
    transaction = case.find(Transaction, command.transaction)
    if transaction is None:
        return absent(f"this merchant has no transaction {command.transaction}")
    if refused := transaction.refuse_dispute(command.amount):
        return refused
    price = case.merchant.pricing.dispute
    fee = in_funding(case, price, command.dispute_rate, None, "dispute")
    if isinstance(fee, Refusal):
        return fee
    takings = lots.take_from_lots(transaction.lots, command.amount)
    dispute, line, own = case.ids(3)
    return (
        DisputeOpened(
            id=own,
            dispute=dispute,
            transaction=transaction.id,
            line=line,
            sum=case.settled(transaction, command.amount, lots.worth_of(takings)),
            takings=takings,
            fee=Fee(flat=fee[0]),
            fee_exchange=fee[1],
            reason_code=command.reason_code,
            reason_title=command.reason_title,
            due_ms=command.due_ms,
            notice=command.notice or UNSET,
        ),
    )


def decide_dispute_end(case: Case, command: DecideDispute) -> BookDecision:
    dispute = case.find(Dispute, command.dispute)
    if dispute is None:
        return absent(f"this merchant has no dispute {command.dispute}")
    if dispute.is_won is not None:
        outcome = "won" if dispute.is_won else "lost"
        return constraint(f"the dispute was {outcome} already: it is decided once")
    transaction = case.find(Transaction, dispute.transaction)
    assert transaction is not None, "a dispute's transaction is in its book"
    line, own = case.ids(2)
    sum_ = case.settled(transaction, dispute.amount, lots.worth_of(dispute.takings))
    decided = DisputeWon if command.is_won else DisputeLost
    return (decided(own, dispute.id, transaction.id, line, sum_),)


def decide_fraud_report(case: Case, command: ReportFraud) -> BookDecision:
    told = decide_if_told_before(case, command.notice)
    if told is not None:
        return told
    transaction = case.find(Transaction, command.transaction)
    if transaction is None:
        return absent(f"this merchant has no transaction {command.transaction}")
    if command.reason is not None and not 0 <= command.reason <= REASON_MAX:
        return constraint(
            f"{command.reason} is no reason: they go from 0 to {REASON_MAX}", "reason"
        )
    fraud, own = case.ids(2)
    return (
        FraudReported(
            id=own,
            fraud=fraud,
            transaction=transaction.id,
            reported_ms=command.reported_ms,
            reason=command.reason,
            notice=command.notice or UNSET,
        ),
    )
