"""The machine: an order and the state of its book in, a step or a refusal out.

    needs     which entities the command has to see; asked until there are none left
    execute   decide (may refuse) -> events -> evolve (cannot) -> the step
    rows      what a commit has to write for the step

Nothing is mutated and nothing is read but the arguments: the same order on the same state at the
same time gives the same step, to the byte. A refusal leaves everything as it was (T8). Entries are
stamped max(now, last + 1 ms) (F13). A batch is steps one after another, each on what the one before
left; none of it counts before its commit is durable.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tollgate.actors.ledger.book.case import Entities
from tollgate.actors.ledger.book.chain import entry_of
from tollgate.actors.ledger.book.decisions.dispatch import decide
from tollgate.actors.ledger.book.entities import Dispute, Entity, Intent
from tollgate.actors.ledger.book.evolution import evolve
from tollgate.actors.ledger.book.head import Head, genesis, row_of_head
from tollgate.actors.ledger.book.invariants import check_invariants
from tollgate.actors.ledger.book.projection import entity_rows_of, key_rows_of
from tollgate.actors.ledger.book.replies import reply_to
from tollgate.actors.ledger.book.transitions import Changed
from tollgate.actors.ledger.law import commands, webhook_law
from tollgate.actors.ledger.law.accounts import overflows, postings_of
from tollgate.actors.ledger.law.events import Event, TransactionCreated
from tollgate.actors.ledger.law.ids import result_of
from tollgate.actors.ledger.law.outcomes import Done, ErrorCode, Refusal, RefusalReason, constraint
from tollgate.actors.ledger.law.rows import Commit, EntityRow, Entry, KeyRow, OperationRow
from tollgate.actors.ledger.law.values import AMOUNT_MAX, EntityId


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """The effect of an order: `head` after it, the entities it changed (None: gone), its events
    with their entries and rows, and the reply. Without events, all was so already."""

    head: Head
    entities: Changed
    events: tuple[Event, ...]
    entries: tuple[Entry, ...]
    rows: tuple[EntityRow, ...]
    keys: tuple[KeyRow, ...]
    reply: Done
    at_ms: int


def needs(command: commands.Command, known: Entities) -> frozenset[EntityId]:
    """Entities still to load before `execute`. Those that do not exist are known as None."""
    return frozenset(wanted for wanted in _wanted(command, known) if wanted not in known)


def _wanted(command: commands.Command, known: Entities) -> Sequence[EntityId]:
    match command:
        case commands.Capture() | commands.Refund() | commands.Void() | commands.SaveCard():
            return (command.transaction,)
        case commands.OpenDispute() | commands.ReportFraud():
            noticed = () if command.notice is None else (command.notice.id,)
            return (command.transaction, *noticed)
        case commands.RecordSettlement():
            return (command.notice.id, command.settled_day)
        case commands.Authorise():
            return () if command.source is None else (command.source,)
        case commands.DecideDispute():
            dispute = known.get(command.dispute)
            if isinstance(dispute, Dispute):
                return (command.dispute, dispute.transaction)
            return (command.dispute,)
        case commands.Intend():
            return _wanted(command.command, known)
        case commands.Conclude():
            return (command.intent, *_of_intent(known.get(command.intent)))
        case commands.RotateKey() | commands.RecoverApp() | commands.ReplaceRecoveryCode():
            return (command.app,)
        case webhook_law.ReplaceWebhookSecret() | webhook_law.ChangeWebhook():
            return (command.webhook,)
        case commands.Import():
            return (command.id, *_wanted(command.command, known))
        case _:
            return ()


def _of_intent(intent: Entity | None) -> Sequence[EntityId]:
    if not isinstance(intent, Intent):
        return ()
    source = intent.then.source if isinstance(intent.then, TransactionCreated) else None
    return tuple(each for each in (intent.transaction, source) if each is not None)


def execute(
    head: Head | None, entities: Entities, order: commands.Order, now_ms: int
) -> OrderEffect | Refusal:
    """One order on its book; `head` is None when there is no such book yet. `entities` hold what
    the command needs, and may hold more."""
    if isinstance(order.command, commands.Conclude):
        order = replace(order, operation=kept_as(order))
    before = genesis(order.book) if head is None else head
    assert before.book == order.book, "an order is executed on its own book"
    loaded = {wanted: entities[wanted] for wanted in _wanted(order.command, entities)}
    events = decide(before, loaded, order, _next_ms(before, now_ms), now_ms)
    if isinstance(events, Refusal):
        return _lost_race(events) if order.is_checked else events
    after, known = before, loaded
    changed: Changed = {}
    entries: list[Entry] = []
    written: list[EntityRow] = []
    keys: list[KeyRow] = []
    for event in events:
        postings = postings_of(event)
        entry = entry_of(after, event, postings, order, _next_ms(after, now_ms))
        after, moved = evolve(after, known, event, entry)
        if overflows(after.accounts, postings):
            return constraint(
                f"the book would hold more than {AMOUNT_MAX}, beyond which JSON is not exact",
                "amount",
                ErrorCode.AMOUNT_TOO_HIGH,
            )
        entries.append(entry)
        written += entity_rows_of(after, moved, event, entry)
        keys += key_rows_of(known, moved)
        known, changed = known | moved, changed | moved
    check_invariants(before, loaded, after, changed, entries)
    return OrderEffect(
        head=after,
        entities=changed,
        events=events,
        entries=tuple(entries),
        rows=tuple(written),
        keys=tuple(keys),
        reply=reply_to(order.command, events, written),
        at_ms=max(now_ms, after.at_ms),
    )


def _next_ms(head: Head, now_ms: int) -> int:
    return max(now_ms, head.at_ms + 1)


def _lost_race(refused: Refusal) -> Refusal:
    """The API saw that it was allowed: so another order came first (C1)."""
    if refused.kind is not RefusalReason.CONSTRAINT:
        return refused
    return replace(refused, kind=RefusalReason.LOST_RACE)


def kept_as(order: commands.Order) -> str:
    """The operation of an order's entries and of its kept reply."""
    command = order.command
    return result_of(command.intent) if isinstance(command, commands.Conclude) else order.operation


def rows(order: commands.Order, step: OrderEffect) -> Commit:
    """A step's part of a commit. In a batch, a later row takes the place of an earlier one with
    the same kind, id and book, and so do heads of the same book."""
    operation = OperationRow(
        operation=kept_as(order),
        book=order.book,
        app=order.origin.app,
        key=order.idempotency_key,
        fingerprint=order.fingerprint,
        done=step.reply.kind,
        body=step.reply.body,
        at_ms=step.at_ms,
    )
    return Commit(
        entries=list(step.entries),
        entities=list(step.rows),
        keys=list(step.keys),
        heads=[row_of_head(step.head)] if step.entries else [],
        operations=[operation],
    )
