"""The versions of the tables, as Alembic runs them."""
