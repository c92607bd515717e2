"""Queries over the tables: for the API's lists, for a shard that starts, for proofs."""
