"""Reports of statistics: one at a time, and nothing is lost meanwhile."""

from concurrent.futures import Future

from tollgate.actors.ratelimit.statistics.tallies import (
    StatisticsDelta,
    StatisticsReporter,
    Tallies,
)

CALLS = "ratelimit_server.ShouldRateLimit.total_requests"


class Receiver:
    """Takes reports, and answers them when the test says so."""

    def __init__(self) -> None:
        self.reports: list[StatisticsDelta] = []
        self.answers: list[Future[object]] = []
        self.is_away = False

    def __call__(self, delta: StatisticsDelta) -> "Future[object] | None":
        self.reports.append(delta)
        if self.is_away:
            return None
        self.answers.append(Future())
        return self.answers[-1]

    def calls(self) -> list[int]:
        return [delta.counts.get(CALLS, 0) for delta in self.reports]


def test_while_a_report_is_under_way_the_counts_gather() -> None:
    tallies, receiver = Tallies("front"), Receiver()
    reporter = StatisticsReporter(tallies, receiver)
    for _ in range(2_000):
        tallies.count(CALLS)
        reporter.report()
    assert receiver.calls() == [1]
    receiver.answers[0].set_result(None)
    reporter.report()
    assert receiver.calls() == [1, 1_999]


def test_reports_go_on_after_one_failed() -> None:
    tallies, receiver = Tallies("front"), Receiver()
    reporter = StatisticsReporter(tallies, receiver)
    reporter.report()
    receiver.answers[0].set_exception(ConnectionError("the receiver was restarted"))
    tallies.count(CALLS)
    reporter.report()
    assert receiver.calls() == [0, 1]


def test_a_report_that_could_not_be_sent_goes_the_next_time() -> None:
    tallies, receiver = Tallies("front"), Receiver()
    reporter = StatisticsReporter(tallies, receiver)
    receiver.is_away = True
    for _ in range(3):
        tallies.count(CALLS)
        reporter.report()
    receiver.is_away = False
    reporter.report()
    assert receiver.calls() == [1, 1, 1, 1]
    receiver.answers[0].set_result(None)
    reporter.report()
    assert receiver.calls()[4:] == [2]
