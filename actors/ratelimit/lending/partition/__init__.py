"""A partition's own: its counters, who has them, who waits for them, and how they come back."""
