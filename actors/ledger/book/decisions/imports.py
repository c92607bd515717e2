"""Test data that already has its ids: an import is another command, done as ever, whose entity gets
the id that it has elsewhere. Nothing else about it is special: the same law decides it, the same
events come of it, and replay knows no difference.

Only the operator imports, and never into a live merchant's book. An id that is there already is
refused; the events' own ids are the book's as always, so that they rise with its commits (L4).
"""

from msgspec.structs import replace

from tollgate.actors.ledger.book.case import BookDecision, Entities
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.law import events
from tollgate.actors.ledger.law.commands import Import
from tollgate.actors.ledger.law.ids import is_id
from tollgate.actors.ledger.law.outcomes import Refusal, constraint, forbidden
from tollgate.actors.ledger.law.values import OPERATOR, EntityId


def refuse_import(
    head: Head, entities: Entities, command: Import, app: EntityId, at_ms: int
) -> Refusal | None:
    """None when this app may import this into the book, at that time."""
    if app != OPERATOR:
        return forbidden("only the operator imports")
    if head.merchant is not None and not head.merchant.is_test:
        return forbidden("nothing is imported into a live merchant's book")
    if not is_id(command.id):
        return constraint(f"{command.id} is no id: 24 hexadecimal digits in lower case", "id")
    if int(command.id[:8], 16) > at_ms // 1000:
        return constraint(f"{command.id} is an id of the future", "id")
    if entities.get(command.id) is not None:
        return constraint(f"there is an entity {command.id} already", "id")
    return None


def with_given_id(decision: BookDecision, given: EntityId) -> BookDecision:
    """The decision on the command inside, as the import's."""
    if isinstance(decision, Refusal) or not decision:
        return decision
    event, *others = decision
    return (_renamed(event, given), *others)


def _renamed(event: events.Event, given: EntityId) -> events.Event:
    match event:
        case events.AppCreated():
            return replace(event, app=given)
        case events.TransactionCreated():
            return replace(event, transaction=given)
        case events.Captured() | events.Refunded() | events.PaidOut():
            return replace(event, line=given)
        case events.CardSaved():
            return replace(event, card=given)
        case _:
            raise AssertionError(f"{event} is not what an import's command leads to")
