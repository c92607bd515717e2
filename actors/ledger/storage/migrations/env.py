"""Alembic's way in: runs the revisions on the connection that `migration.py` hands over."""

from alembic import context

from tollgate.actors.ledger.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
