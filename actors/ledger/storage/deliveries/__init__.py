"""Deliveries to webhooks in storage: tables, claims, settlements, the log; no rules."""
