"""Small and shared by all owners of state: clock, hashing, caches, whole files, latencies,
named actors."""
