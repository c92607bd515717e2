"""The tables of webhooks' deliveries, and the questions that are asked of it."""

from dataclasses import dataclass

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Select,
    Table,
    Text,
    and_,
    case,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from tollgate.actors.ledger.book.entities import Webhook, entity_of_row
from tollgate.actors.ledger.delivery.batches import DeliveryProgress, DueDelivery
from tollgate.actors.ledger.delivery.schedule import GIVE_UP_AFTER_MS, PAUSE_MAX_MS
from tollgate.actors.ledger.law.rows import EntityRow
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.storage.tables import ByteOrderedText, Integer64, entities, metadata

cursors = Table(
    "webhook_cursors",
    metadata,
    Column("webhook", ByteOrderedText, primary_key=True),
    Column("cursor", ByteOrderedText, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("failing_since_ms", Integer64),
    Column("next_attempt_ms", Integer64, nullable=False),
    Column("lease", Text, nullable=False),
    Column("leased_until_ms", Integer64, nullable=False),
)
dead = Table(
    "webhook_dead_letters",
    metadata,
    Column("webhook", ByteOrderedText, nullable=False),
    Column("event", ByteOrderedText, nullable=False),
    Column("at_ms", Integer64, nullable=False),
    Column("reason", Text, nullable=False),
    Column("is_queued", Boolean, nullable=False),
    PrimaryKeyConstraint("webhook", "event"),
    sqlite_with_rowid=False,
)
retries = Table(
    "webhook_retries",
    metadata,
    Column("webhook", ByteOrderedText, nullable=False),
    Column("event", ByteOrderedText, nullable=False),
    Column("failing_since_ms", Integer64, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt_ms", Integer64, nullable=False),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("webhook", "event"),
    Index("webhook_retries_due", "webhook", "next_attempt_ms"),
    sqlite_with_rowid=False,
)
log = Table(
    "webhook_attempts",
    metadata,
    Column("webhook", ByteOrderedText, nullable=False),
    Column("id", ByteOrderedText, nullable=False),
    Column("event", ByteOrderedText, nullable=False),
    Column("type", Text, nullable=False),
    Column("at_ms", Integer64, nullable=False),
    Column("duration_ms", Integer64, nullable=False),
    Column("status", Integer),
    Column("error", Text, nullable=False),
    Column("next_attempt_ms", Integer64),
    PrimaryKeyConstraint("webhook", "id"),
    sqlite_with_rowid=False,
)
# Who looks for work walks the webhooks of all books. (The word stands in the statement, because a
# planner cannot see in a parameter that this index will do.)
WEBHOOK: ColumnElement[str] = literal_column("'webhook'")
Index(
    "entities_webhooks",
    entities.c.id,
    sqlite_where=entities.c.kind == WEBHOOK,
    postgresql_where=entities.c.kind == WEBHOOK,
)


# (as the state of a webhook says it; within a text, quotation marks would be escaped)
DISABLED = '"is_enabled":false'


@dataclass(frozen=True, slots=True)
class DueWebhook:
    """A webhook for which there is something to do. Before it has begun, its cursor is its id."""

    webhook: Webhook
    progress: DeliveryProgress

    @property
    def offer(self) -> DueDelivery:
        """All that a choice among them needs to know."""
        hook = self.webhook
        return DueDelivery(hook.id, hook.book, hook.url, hook.is_test, self.progress.failures)


webhooks = entities.alias("webhooks")
events = entities.alias("events")


def due_webhooks(now_ms: int, lease_ms: int) -> Select[str, str, str, str, int, int, int]:
    """Webhooks that nobody holds, that are enabled, and for which there is something; first the
    ones that were served longest ago."""
    cursor = func.coalesce(cursors.c.cursor, webhooks.c.id)
    next_ms = func.coalesce(cursors.c.next_attempt_ms, literal_column("0"))
    has_event = exists().where(
        events.c.book == webhooks.c.book, events.c.kind == "event", events.c.id > cursor
    )
    # (as `may_go_first` says it)
    is_far = next_ms > now_ms + GIVE_UP_AFTER_MS
    may_go_first = or_(cursors.c.failures == 0, next_ms <= now_ms, is_far)
    has_retry = exists().where(retries.c.webhook == webhooks.c.id, is_retry_due(now_ms))
    has_replay = exists().where(dead.c.webhook == webhooks.c.id, dead.c.is_queued.is_(True))
    return (
        select(
            webhooks.c.id,
            webhooks.c.book,
            webhooks.c.state,
            cursor,
            cursors.c.failures,
            cursors.c.failing_since_ms,
            cursors.c.next_attempt_ms,
        )
        .select_from(webhooks.outerjoin(cursors, cursors.c.webhook == webhooks.c.id))
        .where(
            webhooks.c.kind == WEBHOOK,
            or_(cursors.c.webhook.is_(None), is_free(now_ms, lease_ms)),
            or_(and_(may_go_first, has_event), has_retry, has_replay),
            ~webhooks.c.state.contains(DISABLED, autoescape=True),
        )
        .order_by(case((is_far, 0), else_=next_ms), webhooks.c.id)
    )


def is_free(now_ms: int, lease_ms: int) -> ColumnElement[bool]:
    """Nobody holds it; a lease that lasts twice as long as leases do is of a clock that was wrong
    (and not only a little ahead of this one's)."""
    until_ms = cursors.c.leased_until_ms
    return or_(until_ms <= now_ms, until_ms > now_ms + 2 * lease_ms)


def is_retry_due(now_ms: int) -> ColumnElement[bool]:
    """Its pause is over, or longer than any."""
    next_ms = retries.c.next_attempt_ms
    return or_(next_ms <= now_ms, next_ms > now_ms + PAUSE_MAX_MS)


def due_of(
    webhook: str,
    book: str,
    state: str,
    cursor: str,
    failures: int | None,
    failing_since_ms: int | None,
    next_attempt_ms: int | None,
) -> DueWebhook:
    row = EntityRow("webhook", EntityId(webhook), BookId(book), document="", state=state)
    found = entity_of_row(row)
    assert isinstance(found, Webhook), "a webhook's row holds a webhook"
    progress = DeliveryProgress(
        EntityId(cursor), failures or 0, failing_since_ms, next_attempt_ms or 0
    )
    return DueWebhook(found, progress)


def new_events(due: DueWebhook) -> Select[str, str]:
    """The events that it has not had yet, in order."""
    return (
        select(entities.c.id, entities.c.document)
        .where(
            entities.c.book == due.webhook.book,
            entities.c.kind == "event",
            entities.c.id > due.progress.cursor,
        )
        .order_by(entities.c.id)
    )


def failed_events(webhook: EntityId) -> Select[str, str, int, int, int]:
    """The events that wait for another try."""
    columns = retries.c
    return (
        select(
            columns.event,
            entities.c.document,
            columns.failing_since_ms,
            columns.attempts,
            columns.next_attempt_ms,
        )
        .join_from(retries, entities, entities.c.id == columns.event)
        .where(columns.webhook == webhook)
    )


def queued_letters(webhook: EntityId) -> Select[str, str]:
    """The dead letters that are to be sent again."""
    return (
        select(dead.c.event, entities.c.document)
        .join_from(dead, entities, entities.c.id == dead.c.event)
        .where(dead.c.webhook == webhook, dead.c.is_queued.is_(True))
        .order_by(dead.c.event)
    )
