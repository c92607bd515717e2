"""Ledgers: merchants' books, their single writers, and the journal that makes them durable."""
