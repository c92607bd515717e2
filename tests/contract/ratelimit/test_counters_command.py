"""`tollgate counters` and the pages behind it, over a real debug port and real tables."""

import asyncio
import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.manual_clock import ManualClock
from tollgate.actors.operations.counter_desk import CounterDesk
from tollgate.actors.ratelimit.counting.partition import DirectPartition
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.counter_keys import KeyForm
from tollgate.serve.commands.counters import counters
from tollgate.serve.net.listener import listen
from tollgate.serve.ratelimit.debug.counter_pages import CounterPages
from tollgate.serve.ratelimit.debug.port import DebugPort

NOW_S = 1_000_000
END_S = NOW_S + 50
KEY = "a key of the port"
STARTS_WITHIN_S = 60.0


class Service:
    """Two partitions, one of which may be silent, and the debug port before them."""

    def __init__(self) -> None:
        self.partitions = {
            f"partition-{number}": DirectPartition(100, ManualClock(NOW_S), refuses_when_full=False)
            for number in range(2)
        }
        self.silent: set[str] = set()
        self.key = KEY
        self.elsewhere = ""
        self.port = 0

    def count(self, partition: int, hits: int, domain: str, *entries: str) -> None:
        pairs = tuple((key, value) for key, _, value in (each.partition("=") for each in entries))
        key = KeyForm("", domain, pairs, Unit.MINUTE).key(pairs)
        call = pickle.dumps(([(END_S, [key], [hits])], NOW_S))
        self.partitions[f"partition-{partition}"].hit(call)

    def hits(self) -> list[int]:
        rows = [each.list_counters(bool, None).rows for each in self.partitions.values()]
        return sorted(row.hits for some in rows for row in some)

    async def answer(self, method: Any, *arguments: object, within_s: float) -> Any:
        silent = [self.partitions[name] for name in self.silent]
        return None if method.__self__ in silent else method(*arguments)

    async def nothing(self) -> Any:
        raise AssertionError("nobody asks for this")

    @contextmanager
    def served(self) -> Iterator[None]:
        is_ready, is_over = Event(), Event()

        async def serve() -> None:
            desk = CounterDesk(self.partitions, self.answer)
            pages = CounterPages(
                desk, ManualClock(NOW_S), prefix="", key=self.key, elsewhere=self.elsewhere
            )
            debug = DebugPort(
                statistics=self.nothing,
                dump_rules=self.nothing,
                processes=self.nothing,
                allocations=self,  # type: ignore[arg-type]
                counters=pages,
            )
            async with await listen(debug.app(), "127.0.0.1", 0, what="debug") as listener:
                self.port = listener.port
                is_ready.set()
                await asyncio.to_thread(is_over.wait)

        thread = Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        try:
            assert is_ready.wait(STARTS_WITHIN_S)
            yield
        finally:
            is_over.set()
            thread.join()

    def run(self, *arguments: str, key: str = KEY) -> Result:
        environment = {"DEBUG_PORT": str(self.port), "DEBUG_TRACING_KEY": key}
        return CliRunner().invoke(counters, arguments, env=environment)


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    service.count(0, 3, "edge", "remote=1.2.3.4", "path=/a")
    service.count(1, 4, "edge", "remote=1.2.3.5")
    service.count(1, 5, "other", "remote=1.2.3.4")
    with service.served():
        yield service


def test_counters_are_listed_for_people_and_for_programs(service: Service) -> None:
    result = service.run("list", "--domain", "edge")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].endswith("held by                      counter")
    assert "edge remote=1.2.3.4 path=/a" in result.stdout
    assert "minute" in result.stdout
    assert "other" not in result.stdout
    told = json.loads(service.run("list", "--key", "remote=1.2.3.4", "--json").stdout)
    assert [(each["domain"], each["hits"]) for each in told["counters"]] == [
        ("edge", 3),
        ("other", 5),
    ]
    assert told["isComplete"] is True
    assert told["counters"][0]["windowEndsS"] == END_S


@pytest.mark.parametrize("command", [("list",), ("reset", "edge", "remote=1.2.3.4", "--yes")])
def test_counters_in_a_store_outside_are_looked_for_there(command: tuple[str, ...]) -> None:
    service = Service()
    service.elsewhere = "Redis at counters.example:6379"
    with service.served():
        result = service.run(*command)
    assert result.exit_code == 1
    assert "the counters are in Redis at counters.example:6379" in result.stderr


def test_what_is_beyond_the_maximum_is_told(service: Service) -> None:
    result = service.run("list", "--max", "2")
    assert "There are more than 2" in result.stderr
    assert len(result.stdout.splitlines()) == 3


def test_a_reset_says_first_what_it_would_do(service: Service) -> None:
    result = service.run("reset", "edge", "remote=1.2.3.4", "path=/a")
    assert result.exit_code == 0, result.output
    assert "3 hits would be 0" in result.stdout
    assert "say --yes" in result.stdout
    assert service.hits() == [3, 4, 5]
    result = service.run("reset", "edge", "remote=1.2.3.4", "path=/a", "--yes")
    assert result.exit_code == 0, result.output
    assert "3 hits, now 0" in result.stdout
    assert service.hits() == [0, 4, 5]


def test_a_counter_that_is_not_there_has_neighbours(service: Service) -> None:
    result = service.run("reset", "edge", "remote=1.2.3.9", "--yes")
    assert result.exit_code == 1
    assert "no such counter" in result.stderr
    assert "there is: edge remote=1.2.3.5" in result.stderr
    assert service.hits() == [3, 4, 5]


def test_a_partition_that_does_not_answer_is_told(service: Service) -> None:
    service.silent = {"partition-0"}
    listed = service.run("list")
    assert "partition-0 does not answer" in listed.stderr
    assert "other remote=1.2.3.4" in listed.stdout
    reset = service.run("reset", "edge", "remote=1.2.3.5", "--yes")
    assert reset.exit_code == 1
    assert "4 hits, now 0" in reset.stdout
    assert service.hits() == [0, 3, 5]


@pytest.mark.parametrize("command", ["list", "reset"])
def test_without_the_key_nobody_sees_or_does_anything(service: Service, command: str) -> None:
    arguments = [command] if command == "list" else [command, "edge", "remote=1.2.3.5", "--yes"]
    result = service.run(*arguments, key="another")
    assert result.exit_code == 1
    assert "needs DEBUG_TRACING_KEY" in result.stderr
    assert "DEBUG_TRACING_KEY: set it" in service.run(*arguments, key="").stderr
    assert service.hits() == [3, 4, 5]


def test_a_port_without_a_key_lets_nobody_in() -> None:
    service = Service()
    service.key = ""
    with service.served():
        assert service.run("list").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("reset", "edge", "remote", "--yes"), "every entry as key=value"),
        (("list", "--key", "=v"), "malformed entry '=v'"),
        (("list", *("--key", "k") * 65), "at most 64 entries"),
    ],
)
def test_what_cannot_be_asked(service: Service, arguments: tuple[str, ...], text: str) -> None:
    result = service.run(*arguments)
    assert result.exit_code == 1
    assert text in result.stderr
    assert service.hits() == [3, 4, 5]


def test_nobody_answers() -> None:
    service = Service()
    with service.served():
        pass
    result = service.run("list")
    assert (result.exit_code, "nobody answers at" in result.stderr) == (1, True)


def test_a_long_name_has_a_unit_too(service: Service) -> None:
    value = "v" * 200
    service.count(0, 6, "edge", f"k={value}")
    result = service.run("reset", "edge", f"k={value}")
    assert "per minute: 6 hits would be 0" in result.stdout
    (row,) = json.loads(
        service.run("list", "--key", f"k={value}", "--domain", "edge", "--json").stdout
    )["counters"]
    assert (row["domain"], row["unit"]) == (None, "minute")


def test_who_listens_on_all_addresses_of_ipv6_is_asked_there() -> None:
    service = Service()
    with service.served():
        pass
    environment = {"DEBUG_HOST": "::", "DEBUG_PORT": str(service.port), "DEBUG_TRACING_KEY": KEY}
    result = CliRunner().invoke(counters, ["list"], env=environment)
    assert f"nobody answers at [::1]:{service.port}" in result.stderr
