"""Hands a process's statistics on, one report at a time."""

from collections.abc import Callable
from concurrent.futures import Future

from tollgate.actors.ratelimit.statistics.tallies import StatisticsDelta, Tallies


class StatisticsReporter:
    """While a report is under way nothing is drained: what is counted meanwhile goes with the next
    one, so a receiver that is slow, or away, costs neither memory nor counts. A report that failed
    may have arrived, so it is not sent again. `send` may give None: it could not be sent at all."""

    def __init__(
        self, tallies: Tallies, send: Callable[[StatisticsDelta], "Future[object] | None"]
    ) -> None:
        self._tallies = tallies
        self._send = send
        self._under_way: Future[object] | None = None

    def report(self) -> None:
        """Sends what was counted since the last report, unless that one is still under way."""
        if self._under_way is None or self._under_way.done():
            self._under_way = self._send(self._tallies.drain())
