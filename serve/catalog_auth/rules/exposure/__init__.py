"""X: secrets, and addresses that say too much."""
