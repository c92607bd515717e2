"""The journal and the tables that reads are answered from, on SQLite and PostgreSQL."""
