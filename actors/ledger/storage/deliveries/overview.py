"""How all webhooks together fare, for operators: what waits, and what was given up."""

from sqlalchemy import Select, func, or_, select

from tollgate.actors.ledger.storage.deliveries.tables import (
    DISABLED,
    WEBHOOK,
    cursors,
    dead,
    events,
    retries,
    webhooks,
)


def counted() -> Select[int, int]:
    """The events that were given up and are not to be sent again, and those that wait for another
    try."""
    given_up = select(func.count()).select_from(dead).where(dead.c.is_queued.is_(False))
    waiting = select(func.count()).select_from(retries)
    return select(given_up.scalar_subquery(), waiting.scalar_subquery())


def oldest_new() -> Select[str | None]:
    """The oldest event that was not tried yet, of the webhooks that take new ones."""
    cursor = func.coalesce(cursors.c.cursor, webhooks.c.id)
    of_one = (
        select(func.min(events.c.id))
        .where(events.c.book == webhooks.c.book, events.c.kind == "event", events.c.id > cursor)
        .scalar_subquery()
    )
    return (
        select(func.min(of_one))
        .select_from(webhooks.outerjoin(cursors, cursors.c.webhook == webhooks.c.id))
        .where(
            webhooks.c.kind == WEBHOOK,
            or_(cursors.c.webhook.is_(None), cursors.c.failures == 0),
            ~webhooks.c.state.contains(DISABLED, autoescape=True),
        )
    )
