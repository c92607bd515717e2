"""Stores outside of Tollgate that can hold counters, and the choice among them."""
