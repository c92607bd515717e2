"""The rows about what Tollgate calls: stores of counters, control planes, takers of statistics."""
