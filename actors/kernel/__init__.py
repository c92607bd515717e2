"""Tiny and shared: clock, hashing."""
