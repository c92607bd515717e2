"""Small and shared by all owners of state: clock, hashing, bounded caches, whole files."""
