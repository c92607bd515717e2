"""Connections to SQLite and PostgreSQL, and statements compiled for them; no tables."""
