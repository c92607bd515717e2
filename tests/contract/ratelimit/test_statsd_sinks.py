"""Real statsd servers, killed and started again: nothing counts twice, and little is lost."""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.servers.statsd_server import HOST, StatsdServer, statsd_server
from tests.support.waiting import until
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.actors.ratelimit.statistics.totals import LOST, Flush, Totals
from tollgate.serve.ratelimit.sinks import pump
from tollgate.serve.ratelimit.sinks.choice import line_sink
from tollgate.serve.ratelimit.sinks.connections import DATAGRAM_BYTES_MAX, TcpConnection
from tollgate.serve.ratelimit.sinks.pump import LOOK_EVERY_S, LineSink, StatisticsPump
from tollgate.serve.settings import Settings

CALLS = "ratelimit_server.ShouldRateLimit.total_requests"
TRANSPORTS = {
    "tcp": {"USE_STATSD": "true"},
    "udp": {"USE_STATSD": "true", "STATSD_PROTOCOL": "udp"},
    "agent": {"USE_DOG_STATSD": "true"},
}


class Sender:
    """What is counted, and the way to a server: a step is what a pump does at an interval."""

    def __init__(self, server: StatsdServer, environ: dict[str, str]) -> None:
        place = {"STATSD_HOST": server.host, "STATSD_PORT": str(server.port)}
        self.clock = ManualClock(100)
        self.lost: Counter[str] = Counter()
        sink = line_sink(Settings.from_environment(environ | place), self.clock, self._count_lost)
        assert sink is not None
        self.sink: LineSink = sink
        self.totals = Totals()
        self.tallies = Tallies("front-1")

    def _count_lost(self, name: str, by: int) -> None:
        self.lost[name] += by

    def count(self, calls: int, rules: int = 3) -> None:
        for number in range(rules):
            rule = self.tallies.rule(f"shop.k_{number}", is_dynamic=False)
            rule.total_hits += calls
            rule.within_limit += calls
            if not rule.is_dirty:
                self.tallies.touch(rule)
        self.tallies.count(CALLS, calls)
        self.tallies.observe("ShouldRateLimit", calls, 0.0002)
        self.totals.absorb(self.tallies.drain(), 0.0)

    def step(self) -> bool:
        self.clock.advance(LOOK_EVERY_S)
        if not self.sink.is_ready():
            return False
        self.sink.send(self.totals.flush())
        return True

    def counted(self) -> dict[str, float]:
        return {name: number for name, number in self.totals.counters().items() if number}


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(transport: str) -> Iterator[StatsdServer]:
    with statsd_server("tcp" if transport == "tcp" else "udp") as server:
        yield server


@pytest.fixture
def sender(transport: str, server: StatsdServer) -> Iterator[Sender]:
    sender = Sender(server, TRANSPORTS[transport])
    yield sender
    sender.sink.close()


def test_a_server_that_is_killed_and_started_again_has_everything_once(
    server: StatsdServer, sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "tollgate.operations")
    sender.count(5)
    assert sender.step()
    server.wait_for(CALLS, 5)
    server.kill()
    for _ in range(3):
        sender.count(7)
        assert not sender.step()
    server.start()
    sender.count(1)
    assert sender.step()
    server.wait_for(CALLS, 27)
    expected = sender.counted()
    until(lambda: server.counters() == expected, "everything has come")
    assert server.timed_calls() == 27
    assert not server.malformed
    assert not sender.lost[LOST]
    away, again = (record.getMessage() for record in caplog.records)
    assert away.startswith(f"no statistics are sent to {server.host}:{server.port} (")
    assert "Connection refused" in away or "not there" in away
    assert again == away.partition(" (")[0].replace("no statistics", "statistics") + (
        f" ({'TCP' if server.kind == 'tcp' else 'UDP'}) again"
    )


def test_many_series_go_in_one_flush(server: StatsdServer, sender: Sender) -> None:
    sender.count(2, rules=2_000)
    assert sender.step()
    expected = sender.counted()
    if server.kind == "tcp":
        until(lambda: server.counters() == expected, "everything has come")
        assert server.connections == 1
    else:  # (a kernel may drop datagrams)
        until(lambda: server.lines, "something has come")
        assert server.datagram_bytes_max <= DATAGRAM_BYTES_MAX
    assert not server.malformed


def test_a_server_that_was_never_there_costs_nothing(
    server: StatsdServer, sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "tollgate.operations")
    server.kill()
    for _ in range(5):
        sender.count(1)
        assert not sender.step()
    assert len(caplog.records) == 1
    assert not sender.lost[LOST]
    server.start()
    assert sender.step()
    server.wait_for(CALLS, 5)


@pytest.mark.parametrize("transport", ["tcp"], indirect=True)
def test_a_server_that_reads_nothing_is_waited_for(
    server: StatsdServer,
    sender: Sender,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The network holds some megabytes; what does not fit in waits here, and no more is asked."""
    monkeypatch.setattr(pump, "SEND_WITHIN_S", 0.2)
    caplog.set_level(logging.WARNING, "tollgate.operations")
    sender.count(1)
    assert sender.step()
    server.wait_for(CALLS, 1)
    server.pause()
    counted = 1
    while sender.step():
        counted += 1
        sender.count(1, rules=4_000)
        assert counted < 1_000, "a connection has a bound"
    assert not sender.step()
    server.resume()

    def has_all() -> bool:
        sender.step()
        return server.counters() == sender.counted()

    until(has_all, "everything has come")
    assert server.connections == 1
    assert not server.malformed
    assert not sender.lost[LOST]
    assert "it takes nothing" in caplog.records[0].getMessage()
    assert caplog.records[1].getMessage().endswith("again")


@pytest.mark.parametrize("transport", ["tcp"], indirect=True)
def test_a_server_that_dies_with_what_it_had_not_read(server: StatsdServer, sender: Sender) -> None:
    """Lost is what was given to the connection since the server read last; nothing comes twice."""
    sender.count(5)
    assert sender.step()
    server.wait_for(CALLS, 5)
    server.pause()
    sender.count(7)
    assert sender.step()
    server.kill()
    server.resume()
    server.start()
    sender.count(11)
    until(sender.step, "the server is there again")
    server.wait_for(CALLS, 16)
    assert not server.malformed


@pytest.mark.parametrize("transport", ["udp", "agent"], indirect=True)
def test_what_a_machine_says_it_did_not_take_is_counted(
    server: StatsdServer, sender: Sender
) -> None:
    sender.count(5)
    assert sender.step()
    server.wait_for(CALLS, 5)
    sender.sink.is_ready()
    server.kill()
    sender.sink.send(Flush({CALLS: 3, "other": 1}, {}, {}))
    sender.clock.advance(LOOK_EVERY_S)
    assert not sender.sink.is_ready()
    assert sender.lost[LOST] == 2


@pytest.mark.parametrize("transport", ["udp"], indirect=True)
def test_a_name_that_fits_into_no_datagram_is_lost_alone(
    server: StatsdServer, sender: Sender
) -> None:
    assert sender.sink.is_ready()
    sender.sink.send(Flush({"a": 1, "n" * 4_096: 2, "b": 3}, {}, {}))
    until(lambda: server.counters() == {"a": 1, "b": 3}, "the others have come")
    assert sender.lost[LOST] == 1


def test_a_connection_to_itself_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is given the port it calls is connected to itself."""

    def connected(target: tuple[str, int], timeout: float) -> socket.socket:
        own = socket.socket()
        own.bind((HOST, 0))
        own.connect(own.getsockname())
        return own

    monkeypatch.setattr(socket, "create_connection", connected)
    with pytest.raises(ConnectionRefusedError):
        TcpConnection(HOST, 1).open()


def test_a_pump_sends_at_intervals_and_once_more_when_it_stops(
    server: StatsdServer, sender: Sender
) -> None:
    async def flush() -> Flush:
        return sender.totals.flush()

    async def main() -> None:
        sender.sink._clock = SystemClock()
        sending = StatisticsPump(sender.sink, flush, 0.01)
        sender.count(1)
        sending.start()
        await asyncio.to_thread(server.wait_for, CALLS, 1)
        sender.count(2)
        await sending.stop()
        await sending.stop()
        assert not sending.has_ended
        await asyncio.to_thread(server.wait_for, CALLS, 3)

    asyncio.run(main())
