"""The rows about what Tollgate calls: stores that hold counters, receivers of statistics."""
