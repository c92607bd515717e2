"""Lending between real processes: two fronts, two partitions, and any of them killed or stopped.

Whatever happens, no more is admitted than the limit allows, and all of it when more was asked for.
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
import ray
from ray.exceptions import RayError

from tests.integration.conftest import NAMESPACE, kill, pid_of
from tests.support.ratelimit.lent_fronts import LentFront, Question
from tests.support.waiting import until
from tollgate.actors.kernel.actor import named_actor, next_incarnation
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.decision.counter_query import CounterQuery
from tollgate.actors.ratelimit.lending.asks import LOST
from tollgate.actors.ratelimit.lending.lender import RECOVERING
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms
from tollgate.actors.ratelimit.lent_counting.actor import start_lent_partitions

DAY_S = 86_400
# A busy machine is not what this is about, and a lost process is waited for: its term, its start.
DEADLINE_S = 60.0
ANSWER_WITHIN_S = 180.0
RETURNED_WITHIN_S = 240.0
# Longer than a busy machine keeps anybody from saying that they are there; and for ever.
TERM_S = 15.0
LONG_TERM_S = 600.0
QUESTIONS: list[Question] = [(0, b"one", 1), (0, b"ten", 10), (0, b"many", 1_000)]


@dataclass(frozen=True)
class Cast:
    """The actors of a test."""

    partitions: list[Any]
    fronts: list[Any]

    def ask(self, front: int, question: Question, times: int = 1, by: int = 1) -> list[int | str]:
        asked = self.fronts[front].ask.remote(question, times, by)
        answers: list[int | str] = ray.get(asked, timeout=ANSWER_WITHIN_S)
        return answers

    def ask_together(self, question: Question, times: int) -> list[int | str]:
        """All fronts ask so many times, at the same time."""
        asked = [front.ask.remote(question, times) for front in self.fronts]
        return [answer for each in ray.get(asked, timeout=ANSWER_WITHIN_S) for answer in each]

    def down(self, front: int) -> list[int]:
        down: list[int] = ray.get(self.fronts[front].down.remote(), timeout=ANSWER_WITHIN_S)
        return down

    def sent(self, front: int) -> int:
        return int(ray.get(self.fronts[front].sent.remote(), timeout=ANSWER_WITHIN_S))


def admitted(answers: Sequence[int | str], question: Question) -> int:
    """How many of these were let through."""
    _, _, limit = question
    assert all(isinstance(answer, int) for answer in answers), answers
    return sum(answer <= limit for answer in answers if isinstance(answer, int))


def has_all_slots(front: Any) -> bool:
    slots: int = ray.get(front.slots.remote(), timeout=ANSWER_WITHIN_S)
    return slots == 2 * SLOTS


def has_another_process(actor: Any, pid: int) -> bool:
    with suppress(RayError):
        return pid_of(actor) != pid
    return False


def started(name: str, deadline_s: float = DEADLINE_S, term_s: float = TERM_S) -> Cast:
    """Two partitions and two fronts, of which the first one claims all slots."""
    clock, terms = SystemClock(), Terms(term_s=term_s)
    # Some days ahead, so that no window ends meanwhile.
    end_s = (int(clock.now_s()) // DAY_S + 3) * DAY_S
    names = [f"{name}-partition-{number}" for number in range(2)]
    partitions = start_lent_partitions(names, NAMESPACE, terms, clock)
    fronts: list[Any] = []
    for number in range(2):
        front = f"{name}-front-{number}"
        actor = named_actor(LentFront, front, NAMESPACE, max_task_retries=0)
        fronts.append(actor.remote(front, partitions, deadline_s, terms, end_s))
        if not number:
            until(lambda: has_all_slots(fronts[0]), "the first front has claimed all slots")
    return Cast(partitions, fronts)


@pytest.fixture
def cast(
    request: pytest.FixtureRequest, end_after: Callable[[Any], Any]
) -> Iterator[Callable[..., Cast]]:
    """Starts actors of a test's own."""
    pids: list[int] = []

    def start(deadline_s: float = DEADLINE_S, term_s: float = TERM_S) -> Cast:
        found = started(request.node.name, deadline_s, term_s)
        pids.extend(pid_of(end_after(each)) for each in (*found.partitions, *found.fronts))
        return found

    yield start
    go_on(pids)


@pytest.fixture(scope="module")
def lasting(local_ray: None) -> Iterator[Cast]:
    """Actors for tests after which all of them are there; each has a key of its own."""
    cast = started("lasting", term_s=LONG_TERM_S)
    actors = [*cast.partitions, *cast.fronts]
    pids = [pid_of(actor) for actor in actors]
    yield cast
    go_on(pids)
    for actor in actors:
        ray.kill(actor)


def go_on(pids: list[int]) -> None:
    """One that is stopped could not be ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_a_front_alone_counts_at_home(lasting: Cast) -> None:
    question = (0, b"alone", 1_000)
    assert lasting.ask(0, question) == [1]
    sent = lasting.sent(0)
    assert lasting.ask(0, question, times=5_000) == list(range(2, 5_002))
    # Reports and acknowledgements, however long it took; a call for each hit would be thousands.
    assert lasting.sent(0) - sent < 2_500


def test_fronts_together_admit_what_there_is(lasting: Cast) -> None:
    for _, key, limit in QUESTIONS:
        for partition in range(2):
            question = (partition, b"together " + key, limit)
            answers = lasting.ask_together(question, limit + 5)
            assert admitted(answers, question) == limit


def test_a_killed_partition_forgets_nothing(cast: Callable[..., Cast]) -> None:
    actors = cast()
    before = {}
    for question in QUESTIONS:
        before[question] = actors.ask(0, question, times=question[2] // 2 + 1)
        assert before[question] == list(range(1, question[2] // 2 + 2))
    killed = kill(actors.partitions[0])
    # The front goes on with what it has borrowed; the other one hears when that is known again.
    for question in QUESTIONS:
        (count,) = actors.ask(0, question)
        assert count == question[2] // 2 + 2
        before[question].append(count)
    until(
        lambda: has_another_process(actors.partitions[0], killed),
        "the partition is back",
        RETURNED_WITHIN_S,
    )
    for question in QUESTIONS:
        answers = [*before[question], *asked_until_refused(actors, 1, question)]
        assert admitted(answers, question) == question[2]


def asked_until_refused(actors: Cast, front: int, question: Question) -> list[int]:
    """All answers of a partition that has started again, without those that say that nothing was
    counted: it has not asked everybody yet what they hold, or the front took it for its forerunner.
    """
    counts: list[int] = []

    def is_refused() -> bool:
        answers = actors.ask(front, question, times=100)
        assert {answer for answer in answers if isinstance(answer, str)} <= {RECOVERING, LOST}
        counts.extend(answer for answer in answers if isinstance(answer, int))
        return counts[-1:] > [question[2]]

    until(is_refused, "all is given away", RETURNED_WITHIN_S)
    return counts


def test_a_stopped_partition_stops_nobody_who_has_borrowed(lasting: Cast) -> None:
    questions: list[Question] = [(0, b"stopped " + key, limit) for _, key, limit in QUESTIONS]
    answers = {question: lasting.ask(0, question) for question in questions}
    pid = pid_of(lasting.partitions[0])
    os.kill(pid, signal.SIGSTOP)
    for question in questions:
        answers[question] += lasting.ask(0, question)
    os.kill(pid, signal.SIGCONT)
    for question in questions:
        assert answers[question] == [1, 2]
        answers[question] += lasting.ask_together(question, question[2] + 5)
        assert admitted(answers[question], question) == question[2]


def test_what_is_not_lent_waits_no_longer_than_the_deadline(cast: Callable[..., Cast]) -> None:
    actors = cast(deadline_s=0.2)
    question, other = (0, b"k", 10), (1, b"k", 10)
    until(lambda: isinstance(actors.ask(0, question)[0], int), "the partition knows the front")
    pid = pid_of(actors.partitions[0])
    os.kill(pid, signal.SIGSTOP)
    (answer,) = actors.ask(1, question)
    assert answer == "the counter partition did not answer in time"
    until(lambda: isinstance(actors.ask(1, other)[0], int), "the other partition answers")
    until(lambda: 0 in actors.down(1), "it is left alone after a while")
    sent = actors.sent(1)
    assert set(actors.ask(1, question, times=5_000)) == {answer}
    assert actors.sent(1) - sent < 2_500, "nothing is asked of it"
    os.kill(pid, signal.SIGCONT)
    until(lambda: isinstance(actors.ask(1, question)[0], int), "the partition answers again")
    until(lambda: actors.down(1) == [], "and is known to be there")


def test_what_a_killed_front_had_is_free_after_its_term(cast: Callable[..., Cast]) -> None:
    actors = cast()
    used = {}
    for question in QUESTIONS:
        used[question] = actors.ask(0, question, times=question[2] // 2)
        # Asked for its count, the front gives it back: so it is known.
        assert actors.ask(1, question, by=0) == [question[2] // 2]
        used[question] += actors.ask(0, question)
    kill(actors.fronts[0])
    for question in QUESTIONS:
        answers = used[question] + actors.ask(1, question, times=question[2] + 5)
        # What it counted last, if that was at home, may be known to nobody.
        assert question[2] <= admitted(answers, question) <= question[2] + 1


def test_a_stopped_front_loses_its_loans_and_notices(cast: Callable[..., Cast]) -> None:
    actors = cast()
    used = {}
    for question in QUESTIONS:
        used[question] = actors.ask(0, question, times=question[2] // 2)
        assert actors.ask(1, question, by=0) == [question[2] // 2]
    pid = pid_of(actors.fronts[0])
    os.kill(pid, signal.SIGSTOP)
    for question in QUESTIONS:
        used[question] += actors.ask(1, question, times=question[2] // 4 + 1)
    os.kill(pid, signal.SIGCONT)
    for question in QUESTIONS:
        answers = used[question] + actors.ask_together(question, question[2] + 5)
        assert admitted(answers, question) == question[2]


def test_a_front_that_closes_gives_back(cast: Callable[..., Cast]) -> None:
    actors = cast(term_s=LONG_TERM_S)
    question = (0, b"k", 10)
    assert actors.ask(0, question, times=4) == [1, 2, 3, 4]
    ray.get(actors.fronts[0].close.remote(), timeout=ANSWER_WITHIN_S)
    # Nobody is there who could be called upon, and its term is far from over.
    assert actors.ask(1, question) == [5]


def test_operators_see_and_reset_what_a_front_has(lasting: Cast) -> None:
    question: Question = (0, b"seen", 10)
    assert lasting.ask(0, question, 7) == [*range(1, 8)]
    partition, other = lasting.partitions
    is_wanted = CounterQuery(digests=frozenset({b"seen"}), domain="none").matches

    def reported() -> Any:
        page = ray.get(partition.list_counters.remote(is_wanted, None), timeout=ANSWER_WITHIN_S)
        return [row for row in page.rows if row.hits == 7]

    (row,) = until(reported, "the front has reported")
    assert row.holder is not None
    asked = [each.reset_counters.remote([b"seen"], DEADLINE_S) for each in (partition, other)]
    (reset,), nothing = ray.get(asked, timeout=ANSWER_WITHIN_S)
    assert (reset.row.hits, reset.failure, nothing) == (7, None, [])
    assert admitted(lasting.ask_together(question, 10), question) == 10


def test_every_start_has_a_number_of_its_own(local_ray: None) -> None:
    with ThreadPoolExecutor(4) as threads:
        numbers = list(threads.map(lambda _: next_incarnation("numbered"), range(20)))
    assert sorted(numbers) == list(range(1, 21))
