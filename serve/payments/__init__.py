"""Payments: the doors, the pages and the peers around the ledger."""
