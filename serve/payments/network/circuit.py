"""The circuit breaker of a network: one that does not answer is left alone for a while.

closed     calls go out; so many in a row without an answer open it
open       no call goes out, until the pause is over
half open  one call goes out: its answer closes the circuit, its silence opens it again
"""

from tollgate.actors.kernel.clock import Clock

SILENCES_MAX = 5
PAUSE_S = 10.0


class Circuit:
    """Of one network, in one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._silences = 0
        self._open_until_s = 0.0

    def admits(self) -> bool:
        """True if a call may go out; of a half open circuit, to the first who asks."""
        if self._silences < SILENCES_MAX:
            return True
        now_s = self._clock.monotonic_s()
        if now_s < self._open_until_s:
            return False
        self._open_until_s = now_s + PAUSE_S
        return True

    def answered(self) -> None:
        self._silences = 0

    def silent(self) -> None:
        self._silences += 1
        self._open_until_s = self._clock.monotonic_s() + PAUSE_S
