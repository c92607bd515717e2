"""Every arrow of the table in watching/subscription.py, without a control plane."""

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Thread

import pytest

from tests.support.manual_clock import ManualClock
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.rules.rule_file import LOCATED_MAX, RuleFile, RuleFileError
from tollgate.actors.ratelimit.watching.in_force import LOAD_ERROR, LOAD_SUCCESS, GoodRules
from tollgate.actors.ratelimit.watching.subscription import (
    ACKNOWLEDGED,
    AWAY,
    REFUSED,
    SETTLED_S,
    STREAMS_ENDED,
    Absence,
    Subscribe,
    Subscription,
)

# Whatever a resource is made of, the verdict is the same: here they are YAML.
ONE = [RuleFile("a", "domain: one")]
OTHER = [RuleFile("b", "domain: other")]
WRONG = [RuleFile("a", "descriptors: []")]
WHY = "a: config file cannot have empty domain"
GARBLED = RuleFileError("resource 1 of 1", None, "cannot be decoded")
PATIENCE_S = 60.0


class Shelf:
    """A rule archive in memory."""

    good: GoodRules | None = None

    def put_away(self, good: GoodRules) -> None:
        self.good = good

    def take_out(self) -> GoodRules | None:
        return self.good


class Subscribed:
    """A subscription, with the thread that has the stream and the actor that looks."""

    def __init__(self, shelf: Shelf | None = None, target: str = "plane:1") -> None:
        self.clock = ManualClock()
        load = partial(load_rules, merge_domains=False)
        self.subject = Subscription(target, "node", shelf or Shelf(), load, self.clock)

    def offer(
        self, version: str, nonce: str, files: Sequence[RuleFile] | RuleFileError
    ) -> tuple[Subscribe, bool]:
        """The verdict on a set, and whether there was something to tell."""
        with ThreadPoolExecutor(1) as stream:
            verdict: Future[Subscribe] = stream.submit(self.subject.offered, version, nonce, files)
            self.subject.wait(PATIENCE_S)
            assert not verdict.done()
            has_news = self.subject.look()
            return verdict.result(PATIENCE_S), has_news

    @property
    def in_force(self) -> tuple[int, list[str], str]:
        """The number of the generation, its domains and its version."""
        generation = self.subject.generation
        if generation is None:
            return 0, [], ""
        return generation.number, list(generation.rules.domains), self.subject.version

    @property
    def away(self) -> str:
        return str(self.subject.described()["away"])


@pytest.fixture
def subscribed() -> Subscribed:
    return Subscribed()


def test_a_good_set_is_in_force_and_acknowledged(subscribed: Subscribed) -> None:
    assert subscribed.subject.first_message() == Subscribe("")
    assert subscribed.offer("7", "n1", ONE) == (Subscribe("7", "n1"), True)
    assert subscribed.in_force == (1, ["one"], "7")
    assert subscribed.offer("8", "n2", [*OTHER, *ONE]) == (Subscribe("8", "n2"), True)
    assert subscribed.in_force == (2, ["one", "other"], "8")


def test_no_resources_are_rules_without_domains(subscribed: Subscribed) -> None:
    subscribed.offer("7", "n1", ONE)
    assert subscribed.offer("8", "n2", []) == (Subscribe("8", "n2"), True)
    assert subscribed.in_force == (2, [], "8")


def test_a_wrong_set_changes_nothing_and_is_refused_with_its_text(subscribed: Subscribed) -> None:
    subscribed.offer("7", "n1", ONE)
    assert subscribed.offer("8", "n2", [*OTHER, *WRONG]) == (Subscribe("7", "n2", WHY), True)
    assert subscribed.in_force == (1, ["one"], "7")
    assert str(subscribed.subject.error) == WHY
    totals = subscribed.subject.totals()
    assert totals == {
        LOAD_SUCCESS: 1,
        LOAD_ERROR: 1,
        ACKNOWLEDGED: 1,
        REFUSED: 1,
        STREAMS_ENDED: 0,
    }


def test_what_cannot_be_decoded_is_refused_and_no_load(subscribed: Subscribed) -> None:
    subscribed.offer("7", "n1", ONE)
    refusal = Subscribe("7", "n2", "resource 1 of 1: cannot be decoded")
    assert subscribed.offer("8", "n2", GARBLED) == (refusal, True)
    assert subscribed.in_force == (1, ["one"], "7")
    assert subscribed.subject.error is GARBLED
    totals = subscribed.subject.totals()
    assert (totals[LOAD_ERROR], totals[REFUSED]) == (0, 1)


def test_the_first_set_may_be_wrong(subscribed: Subscribed) -> None:
    assert subscribed.offer("7", "n1", WRONG) == (Subscribe("", "n1", WHY), True)
    assert subscribed.in_force == (0, [], "")
    assert subscribed.offer("8", "n2", ONE) == (Subscribe("8", "n2"), True)
    assert (subscribed.in_force, subscribed.subject.error) == ((1, ["one"], "8"), None)


def test_the_same_content_under_another_version(subscribed: Subscribed) -> None:
    subscribed.offer("7", "n1", ONE)
    assert subscribed.offer("8", "n2", ONE) == (Subscribe("8", "n2"), False)
    assert subscribed.in_force == (1, ["one"], "8")
    assert subscribed.subject.first_message() == Subscribe("8")


def test_the_end_of_an_error_is_told_even_if_the_rules_are_the_old_ones(
    subscribed: Subscribed,
) -> None:
    subscribed.offer("7", "n1", ONE)
    subscribed.offer("8", "n2", GARBLED)
    assert subscribed.offer("9", "n3", ONE) == (Subscribe("9", "n3"), True)
    assert subscribed.subject.error is None


def test_the_text_of_a_refusal_is_bounded_and_printable(subscribed: Subscribed) -> None:
    wrong = RuleFileError("r", None, "\x00" + "x" * LOCATED_MAX)
    (verdict, _) = subscribed.offer("1", "n1", wrong)
    assert verdict.error.startswith("r: \\x00xxx")
    assert len(verdict.error) < LOCATED_MAX + 10


def test_a_new_stream_asks_with_the_version_acknowledged_last(subscribed: Subscribed) -> None:
    subscribed.offer("7", "n1", ONE)
    subscribed.offer("8", "n2", WRONG)
    subscribed.subject.lost(Absence.STREAM, "UNAVAILABLE: gone")
    assert subscribed.subject.first_message() == Subscribe("7", nonce="")
    subscribed.subject.look()
    assert subscribed.in_force == (1, ["one"], "7")


def test_nothing_offered_is_nothing_to_look_at(subscribed: Subscribed) -> None:
    subscribed.subject.wait(0.0)
    assert not subscribed.subject.look()


def test_a_control_plane_that_never_answered_is_away_from_the_start(subscribed: Subscribed) -> None:
    assert subscribed.away == "plane:1: the control plane has not answered yet"
    subscribed.clock.advance(3)
    assert subscribed.subject.gauges() == {AWAY: 3.0}


def test_one_that_is_away_is_told_once_for_each_kind_of_reason(
    subscribed: Subscribed, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "tollgate.rules")
    for reason in ("refused", "timed out", "refused"):
        subscribed.subject.lost(Absence.CONNECTION, reason)
        assert not subscribed.subject.look()
        assert not subscribed.subject.look()
        assert subscribed.away == f"plane:1: the control plane cannot be reached: {reason}"
    subscribed.subject.lost(Absence.TLS, "a bad certificate")
    subscribed.subject.look()
    subscribed.subject.opened()
    subscribed.offer("7", "n1", ONE)
    assert subscribed.away == ""
    assert caplog.messages == [
        "the rules in force stay: plane:1: the control plane cannot be reached: refused",
        "the rules in force stay: plane:1: the control plane and we do not agree on TLS: "
        "a bad certificate",
        "the control plane plane:1 answers",
    ]


def test_a_stream_that_is_silent_is_good_after_a_while(subscribed: Subscribed) -> None:
    """One with nothing new says nothing: nobody could tell it from one that hangs."""
    subscribed.subject.opened()
    subscribed.clock.advance(SETTLED_S - 1)
    subscribed.subject.look()
    assert subscribed.away
    subscribed.clock.advance(1)
    subscribed.subject.look()
    assert subscribed.away == ""
    assert subscribed.subject.gauges() == {AWAY: 0.0}


def test_a_stream_that_is_renewed_is_not_told(
    subscribed: Subscribed, caplog: pytest.LogCaptureFixture
) -> None:
    subscribed.subject.opened()
    subscribed.offer("7", "n1", ONE)
    caplog.clear()
    subscribed.subject.lost(Absence.STREAM, "UNAVAILABLE: max age")
    subscribed.clock.advance(4)
    subscribed.subject.look()
    assert subscribed.away == ""
    assert subscribed.subject.gauges() == {AWAY: 4.0}
    subscribed.subject.opened()
    subscribed.offer("8", "n1", ONE)
    assert caplog.messages == []
    assert subscribed.subject.gauges() == {AWAY: 0.0}
    assert subscribed.subject.totals()[STREAMS_ENDED] == 1


def test_a_renewal_that_fails_is_told(
    subscribed: Subscribed, caplog: pytest.LogCaptureFixture
) -> None:
    subscribed.subject.opened()
    subscribed.offer("7", "n1", ONE)
    subscribed.subject.lost(Absence.STREAM, "UNAVAILABLE: max age")
    subscribed.subject.look()
    caplog.clear()
    subscribed.subject.opened()
    subscribed.subject.lost(Absence.STREAM, "PERMISSION_DENIED: who are you")
    subscribed.subject.look()
    (line,) = caplog.messages
    assert line.endswith("the control plane has ended the stream: PERMISSION_DENIED: who are you")
    # (away since the good stream ended)
    subscribed.clock.advance(5)
    assert subscribed.subject.gauges() == {AWAY: 5.0}


def test_a_restart_goes_on_from_the_last_good_rules_and_asks_for_everything() -> None:
    shelf = Shelf()
    first = Subscribed(shelf)
    first.offer("7", "n1", ONE)
    first.offer("8", "n2", WRONG)
    second = Subscribed(shelf)
    assert second.in_force == (1, ["one"], "7")
    assert second.subject.first_message() == Subscribe("")
    second.offer("1", "n1", OTHER)
    assert second.in_force == (2, ["other"], "1")


def test_rules_of_another_control_plane_or_node_are_not_gone_on_with() -> None:
    shelf = Shelf()
    Subscribed(shelf).offer("7", "n1", ONE)
    assert Subscribed(shelf, target="plane:2").in_force == (0, [], "")


def test_rules_that_were_put_away_under_other_settings_are_left_alone() -> None:
    shelf = Shelf()
    Subscribed(shelf).offer("7", "n1", ONE)
    assert shelf.good is not None
    shelf.good = replace(shelf.good, files=tuple(WRONG))
    assert Subscribed(shelf).in_force == (0, [], "")


def test_a_thread_that_has_ended_by_an_error_is_told(subscribed: Subscribed) -> None:
    thread = Thread(target=int)
    subscribed.subject.served_by(thread)
    with pytest.raises(RuntimeError, match="nobody listens to the control plane any more"):
        subscribed.subject.look()
    subscribed.subject.served_by(None)
    assert not subscribed.subject.look()
