"""Copies: a partition's counters in the memory of another one, on another node. What is read and
written is of `lending`; journals on disk are `snapshots`."""
