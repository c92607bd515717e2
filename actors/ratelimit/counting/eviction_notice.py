"""The line in the log about live counters that a full table has given up: at most one a minute."""

from math import inf

EVERY_S = 60.0


class EvictionNotice:
    """Tells of one table's evictions. The clock may jump: at worst there is a line too many."""

    def __init__(self) -> None:
        self._told = 0
        self._told_s = -inf

    def look(self, evicted: int, now_s: float) -> str | None:
        """The line that is due, when so many have been given up since the table was made."""
        if evicted == self._told or abs(now_s - self._told_s) < EVERY_S:
            return None
        new, self._told, self._told_s = evicted - self._told, evicted, now_s
        return (
            f"the counter table is full: {new} counters whose windows have not ended were given up "
            "and begin again at 0; raise COUNTERS_PER_PARTITION_MAX, or see COUNTERS_WHEN_FULL"
        )
