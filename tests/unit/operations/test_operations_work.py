"""The operations actor without Ray: what its sign of life is worth, and that it goes on asking."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from threading import Event
from typing import Any

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.virtual_loop import VirtualLoop
from tollgate.actors.operations.actor import Operations
from tollgate.actors.operations.attendant import Attendant
from tollgate.actors.operations.outlets import OpenPort

A_WHILE_S = 30


class Handle:
    """An actor handle of which each call raises at once, as with too many calls pending."""

    def __init__(self, failure: type[Exception]) -> None:
        self.calls = 0
        self._failure = failure

    def __getattr__(self, method: str) -> "Handle":
        return self

    def remote(self) -> None:
        self.calls += 1
        raise self._failure("too many calls are pending")


class Work:
    """An operations actor with a watcher and a partition that cannot be called."""

    def __init__(self, open_ports: Callable[[Any], Any]) -> None:
        self.partition = Handle(OverflowError)
        self.watcher = Handle(KeyError)
        parts = ([self.partition], self.watcher, ManualClock(), 10)
        self.operations = Operations(open_ports, *parts)


async def no_ports(_: Operations) -> Mapping[str, OpenPort]:
    return {}


async def taken_port(_: Operations) -> Mapping[str, OpenPort]:
    raise OSError("cannot listen for the debug port")


@pytest.fixture
def attending(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Set: the thread that looks after the others has ended."""
    ended = Event()

    def attend(_: Attendant, is_dismissed: Event) -> None:
        ended.wait()

    monkeypatch.setattr(Attendant, "attend", attend)
    yield ended
    ended.set()


def run(story: Coroutine[Any, Any, None]) -> None:
    loop = VirtualLoop()
    loop.run(story)
    assert loop.accidents == []


def test_it_goes_on_asking_processes_that_cannot_be_called(
    attending: Event, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        work = Work(no_ports)
        await work.operations.begin()
        await asyncio.sleep(A_WHILE_S)
        assert work.partition.calls > A_WHILE_S - 2
        assert work.watcher.calls > A_WHILE_S - 2
        assert set(await work.operations.describe()) == {"pid"}

    run(story())
    assert "could not be asked for its statistics" in caplog.text


def test_it_does_not_answer_when_it_no_longer_looks_after_the_others(attending: Event) -> None:
    async def story() -> None:
        operations = Work(no_ports).operations
        await operations.describe()
        attending.set()
        operations._attending.join()
        with pytest.raises(RuntimeError, match="does not look after the other actors any more"):
            await operations.describe()
        await operations.dismiss()
        await operations.describe()

    run(story())


def test_it_does_not_answer_when_it_no_longer_asks(
    attending: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def end(_: Operations) -> None:
        """The task that asks, at its end."""

    monkeypatch.setattr(Operations, "_ask_for_ever", end)

    async def story() -> None:
        operations = Work(no_ports).operations
        await operations.begin()
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="does not ask the other processes any more"):
            await operations.describe()

    run(story())


class EndedPump:
    """A pump whose task has failed."""

    has_ended = True

    def __init__(self) -> None:
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    async def stop(self) -> None:
        self.calls.append("stop")


def test_it_does_not_answer_when_statistics_are_no_longer_sent(attending: Event) -> None:
    pump = EndedPump()

    async def story() -> None:
        operations = Operations(
            no_ports, [], Handle(KeyError), ManualClock(), 10, make_pump=lambda _: pump
        )
        await operations.begin()
        with pytest.raises(RuntimeError, match="does not send statistics any more"):
            await operations.describe()
        await operations.end()

    run(story())
    assert pump.calls == ["start", "stop"]


def test_a_port_that_is_taken_is_no_hang(attending: Event) -> None:
    async def story() -> None:
        operations = Work(taken_port).operations
        with pytest.raises(OSError, match="cannot listen"):
            await operations.begin()
        assert set(await operations.describe()) == {"pid"}

    run(story())
