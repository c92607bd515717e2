"""Decides batches of requests: plans, rounds of counting, and what counts mean; no counters."""
