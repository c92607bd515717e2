"""A front process: its threads are supervised, and it drains once."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from tests.support.ratelimit.engine import Engine, rules_from
from tests.support.ratelimit.grpc_peers import PATIENCE_S, World, caller
from tests.support.ratelimit.json_port import FREE_PORT
from tests.support.waiting import until
from tollgate.actors.ratelimit.rules.rule_set import RuleSet
from tollgate.actors.ratelimit.statistics.tallies import StatisticsReporter
from tollgate.serve.ratelimit.front_process import EndedThreads, FrontProcess
from tollgate.serve.ratelimit.json_door.exchange import JsonExchange
from tollgate.serve.ratelimit.json_door.server import JsonDoor
from tollgate.serve.settings.choices import GrpcFront

RULES = rules_from("domain: d\ndescriptors: [{key: k}]\n")


class Counters:
    """A store with nothing to look after, until it breaks."""

    partitions = 1
    down: frozenset[int] = frozenset()

    def __init__(self) -> None:
        self.is_broken = False

    has_begun = True
    evicted = 0
    resets = 0
    closed = 0

    def close(self) -> None:
        self.closed += 1

    def probe(self) -> None:
        assert not self.is_broken, "an error that nobody foresaw"


class Spans:
    """What makes spans, and notes when it is told to begin and to end."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.tended = 0

    def tend(self) -> None:
        self.tended += 1

    def start(self) -> None:
        self.told.append("start")

    def stop(self) -> None:
        self.told.append("stop")


class Process:
    """A front process with all that a test turns."""

    def __init__(self, choice: GrpcFront, world: World, socket_dir: Path) -> None:
        engine = Engine(None)
        self.decider = engine.decider
        self.counters = Counters()
        self.spans = Spans()
        self.is_dismissed = False
        self.reported: list[object] = []
        self.world = world
        service = world.service()
        exchange = JsonExchange(world.health, is_precise=True)
        self.json_door = JsonDoor(FREE_PORT, service, exchange)
        self.process = FrontProcess(
            front=world.front(choice, socket_dir),
            json_door=self.json_door,
            service=service,
            decider=engine.decider,
            store=self.counters,  # type: ignore[arg-type]
            tallies=engine.tallies,
            follow=self.follow,
            attend=self.attend,
            reporter=StatisticsReporter(engine.tallies, self.reported.append),
            checks_backend=False,
            spans=self.spans,  # type: ignore[arg-type]
        )

    def attend(self, is_dismissed: Event) -> None:
        is_dismissed.wait()
        self.is_dismissed = True

    def follow(self, is_stopped: Event) -> Iterator[RuleSet]:
        yield RULES
        is_stopped.wait()


@pytest.fixture
def running(choice: GrpcFront, world: World, socket_dir: Path) -> Iterator[Process]:
    found = Process(choice, world, socket_dir)
    found.process.start(waits_for_rules=True)
    yield found
    found.process.drain(0)
    found.process.stop()


def test_it_serves_and_is_well(running: Process) -> None:
    running.process.check()
    with caller(running.process.front.address) as peer:
        assert peer.decide(b"x", timeout=PATIENCE_S) == b"re:x"
    until(lambda: len(running.reported) > 1, "the statistics are reported again and again")


def test_it_is_unhealthy_until_its_counters_were_reached(running: Process) -> None:
    health = running.world.health
    running.counters.has_begun = False
    until(lambda: not health.is_healthy, "the store was not reached yet")
    running.counters.has_begun = True
    until(lambda: health.is_healthy, "the store was reached")


def test_what_is_known_to_be_over_is_forgotten_when_counters_are_reset(
    running: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten = Event()
    monkeypatch.setattr(running.decider, "forget_over_limit", forgotten.set)
    running.counters.resets = 1
    assert forgotten.wait(PATIENCE_S)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_ends_is_reported(running: Process) -> None:
    running.counters.is_broken = True

    def report() -> str:
        try:
            running.process.check()
        except EndedThreads as error:
            return str(error)
        return ""

    assert until(report, "the thread's end is seen") == "threads have ended: upkeep"


def test_the_thread_for_spans_is_tended(running: Process) -> None:
    until(lambda: running.spans.tended > 1, "again and again")
    running.process.check()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_json_door_that_ends_is_reported(running: Process) -> None:
    door = running.json_door
    door.drain(0)
    until(lambda: door.has_ended_threads, "its thread has ended")
    with pytest.raises(EndedThreads, match="the JSON door's"):
        running.process.check()


def test_a_drained_process_is_gone_and_still_well(running: Process) -> None:
    assert not running.is_dismissed
    assert running.spans.told == ["start"]
    for _ in range(2):
        running.process.drain(0)
    until(lambda: running.is_dismissed, "it looks after nobody any more")
    assert running.spans.told == ["start", "stop"]
    assert not running.world.health.is_healthy
    running.process.check()
