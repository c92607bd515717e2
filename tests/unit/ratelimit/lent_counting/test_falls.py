"""Fronts that remember what is over its limit hear when others have given hits back."""

import pickle
from collections.abc import Mapping

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.lending_pair import Pair
from tollgate.actors.ratelimit.lending.borrower import Borrower
from tollgate.actors.ratelimit.lending.messages import ToFront
from tollgate.actors.ratelimit.lending.terms import Terms, slot_of
from tollgate.actors.ratelimit.lent_counting.channel import OnReply
from tollgate.actors.ratelimit.lent_counting.line import Line

LIMIT = 10


class Listeners(Pair):
    """Two fronts. `falls`: the figures that each has heard, in order, without repetitions."""

    def __init__(self) -> None:
        super().__init__(Terms(), fronts=2)
        self.falls: list[list[int]] = [[], []]
        self.rest(1.0)

    def _deliver(self, answers: Mapping[str, ToFront]) -> None:
        super()._deliver(answers)
        for number, heard in enumerate(self.falls):
            answer = answers.get(f"front {number}")
            if answer is not None and heard[-1:] != [answer.falls]:
                heard.append(answer.falls)


@pytest.fixture
def pair() -> Listeners:
    return Listeners()


def test_others_hear_of_a_refund_of_a_shared_counter(pair: Listeners) -> None:
    for front in (0, 1, 0, 1):
        pair.hit_one(b"k", LIMIT, front, by=5)
        pair.rest(0.2)
    pair.hit_one(b"k", LIMIT, 0, by=-3)
    pair.rest(0.2)
    assert pair.falls == [[0], [0, 1]]


def test_others_hear_of_a_refund_at_home(pair: Listeners) -> None:
    pair.hit_one(b"k", LIMIT, 0, by=LIMIT + 1)
    pair.rest(0.2)
    machine, _ = pair.fronts
    assert machine._home.epoch(slot_of(b"k")), "it counts by itself"
    pair.hit_one(b"k", LIMIT, 0, by=-5)
    pair.rest(0.2)
    assert pair.falls == [[0], [0, 1]]


def test_hits_alone_are_no_news(pair: Listeners) -> None:
    for _ in range(20):
        for front in (0, 1):
            pair.hit_one(b"k", LIMIT, front)
    pair.rest(5.0)
    assert pair.falls == [[0], [0]]


class Mail:
    """A channel that brings what it is given."""

    def __init__(self) -> None:
        self.falls = 0

    def send(self, message: bytes, on_reply: OnReply) -> None:
        reply = ToFront(1, 1, 0.0, 0.0, False, (0, 0), 0, [], self.falls)
        on_reply(pickle.dumps([reply]))

    def listen(self, front: str, on_reply: OnReply) -> None:
        """Nothing comes unasked."""


def test_a_front_notes_each_time_that_it_hears_of_one() -> None:
    clock, mail = ManualClock(1_000_000), Mail()
    borrower = Borrower(Terms(), "front")
    line = Line(borrower, mail, clock, front="front", deadline_s=1.0, wake=lambda: None)

    def resets_after(falls: int) -> int:
        mail.falls = falls
        clock.advance(1.0)
        line.flush()
        line.flush()
        return line.resets

    # What it hears first may be of before its time.
    assert [resets_after(falls) for falls in (5, 5, 6, 6, 9)] == [0, 0, 1, 1, 2]
