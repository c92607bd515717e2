"""Signing URLs of objects, for those buckets that the operator lists."""
