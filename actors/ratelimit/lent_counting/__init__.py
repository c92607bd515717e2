"""Counting by lending: the actor that owns and lends counters, the store that counts at home."""
