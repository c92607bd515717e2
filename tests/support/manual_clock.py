"""A clock that tests move by hand."""


class ManualClock:
    """A `Clock` that moves only when a test or a simulation moves it."""

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s
        self._turned_s = 0.0

    def now_s(self) -> float:
        return self._now_s + self._turned_s

    def monotonic_s(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        assert seconds >= 0, "a manual clock does not run backwards"
        self._now_s += seconds

    def set(self, now_s: float) -> None:
        self._now_s = now_s
        self._turned_s = 0.0

    def turn(self, seconds: float) -> None:
        """Somebody turns the time of day, which monotonic time does not hear of."""
        self._turned_s += seconds
