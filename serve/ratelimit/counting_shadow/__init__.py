"""Counting in a second place beside the one that decides, and what the two say differently."""
