"""Whatever names hold, a line is a line; whatever is sent adds up to what was counted."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.manual_clock import ManualClock
from tollgate.actors.kernel.latencies import (
    LATENCY_BOUNDS_S,
    Latency,
    LatencyTally,
)
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.actors.ratelimit.statistics.totals import DYNAMIC_SERIES_IDLE_S, Flush, Totals
from tollgate.serve.ratelimit.sinks.lines import DogstatsdLines, StatsdLines, sample_rates
from tollgate.serve.ratelimit.sinks.mogrification import Mogrification
from tollgate.serve.ratelimit.sinks.pump import LOOK_EVERY_S, LineSink

TEXTS = st.text(max_size=40) | st.text(alphabet=":|\n\r#@,=._\x85\u2028\ud800a", max_size=40)
LONG_TEXTS = TEXTS.map(lambda text: text * (4_096 // max(1, len(text))))
KEYS = st.sampled_from(["d.a", "d.b", "d.a.b"])
BUCKETS = len(LATENCY_BOUNDS_S) + 1
DURATIONS_S = st.floats(0, 30, allow_nan=False)


@given(st.lists(TEXTS | LONG_TEXTS, max_size=5), st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_request_text_is_within_one_line(names: list[str], tags: dict[str, str]) -> None:
    flush = Flush(dict.fromkeys(names, 1), {}, {})
    for lines in (StatsdLines(tags), DogstatsdLines(tags, Mogrification())):
        for line in lines(flush):
            text = line.decode()
            assert len(text.splitlines()) == 1
            _, colon, rest = text.partition(":")
            assert colon
            kind, _, found = rest.removeprefix("1|c").partition("|#")
            assert (rest[:3], kind) == ("1|c", "")
            assert "|" not in found
            assert found.count(",") == max(0, len(tags) - 1) or not found


@given(st.lists(st.tuples(st.integers(1, 50), DURATIONS_S), max_size=20))
def test_samples_are_the_calls_and_their_time(calls: list[tuple[int, float]]) -> None:
    tally = LatencyTally()
    for count, seconds in calls:
        tally.observe(count, seconds)
    latency = tally.value()
    samples = latency.samples()
    assert sum(count for count, _ in samples) == latency.count
    assert sum(n * s for n, s in samples) == pytest.approx(latency.sum_s, rel=1e-9, abs=1e-9)
    bounds_s = [0.0, *LATENCY_BOUNDS_S, float("inf")]
    filled = [position for position, count in enumerate(latency.counts) if count]
    for position, (count, seconds) in zip(filled, samples, strict=True):
        assert count == latency.counts[position]
        assert bounds_s[position] <= seconds <= bounds_s[position + 1] * (1 + 1e-9)


@given(st.lists(st.integers(0, 9), min_size=BUCKETS, max_size=BUCKETS), st.data())
def test_calls_within_a_bound_grow_with_it(counts: list[int], data: st.DataObject) -> None:
    latency = Latency(tuple(counts), 1.0)
    low, high = sorted(data.draw(st.tuples(DURATIONS_S, DURATIONS_S)))
    assert 0 <= latency.calls_within(low) <= latency.calls_within(high) <= latency.count
    exact = [latency.calls_within(bound) for bound in LATENCY_BOUNDS_S]
    assert exact == list(latency.cumulative()[:-1])


@given(st.integers(0, 10**7))
def test_rates_stand_for_all_calls(calls: int) -> None:
    rates = list(sample_rates(calls))
    assert sum(int(1 / float(rate[2:])) if rate else 1 for rate in rates) == calls
    assert len(rates) <= 10


class Wire:
    """A connection that takes so many lines of each call, or is not there."""

    address = "here"

    def __init__(self, takes: list[int | None]) -> None:
        self._takes = iter(takes)
        self.takes: int | None = 0
        self.lost = 0
        self.received: Counter[str] = Counter()

    def open(self) -> None:
        self.takes = next(self._takes, 1_000_000)
        if self.takes is None:
            raise ConnectionRefusedError(111, "refused")

    def send(self, lines: list[bytes], within_s: float) -> int:
        assert self.takes is not None
        taken = min(self.takes, len(lines))
        self.takes -= taken
        for line in lines[:taken]:
            found = re.fullmatch(r"(.+):(\d+)\|c", line.decode())
            assert found is not None
            self.received[found[1]] += int(found[2])
        return taken

    def close(self) -> None: ...


@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(KEYS, st.booleans(), st.integers(1, 9)), max_size=6),
            st.integers(0, 3),
        ),
        max_size=12,
    ),
    st.lists(st.none() | st.integers(0, 8), max_size=12),
)
def test_what_is_sent_adds_up_to_what_was_counted(
    steps: list[tuple[list[tuple[str, bool, int]], int]], takes: list[int | None]
) -> None:
    """Also by a server that comes and goes, and takes a part; names are of requests or of rules,
    and series are forgotten between flushes."""
    wire, clock, totals, front = Wire(takes), ManualClock(), Totals(), Tallies("front-1")
    lost: list[int] = []
    sink = LineSink(wire, StatsdLines({}), clock, lambda _, by: lost.append(by))
    expected: Counter[str] = Counter()

    def step(pause_s: float) -> None:
        totals.absorb(front.drain(), clock.monotonic_s())
        if sink.is_ready():
            sink.send(totals.flush())
            clock.advance(pause_s)
        clock.advance(LOOK_EVERY_S)

    for hits, pauses in steps:
        for key, is_dynamic, number in hits:
            rule = front.rule(key, is_dynamic)
            rule.total_hits += number
            if not rule.is_dirty:
                front.touch(rule)
            expected[f"ratelimit.service.rate_limit.{key}.total_hits"] += number
        step(pauses * DYNAMIC_SERIES_IDLE_S / 3)
    for _ in range(len(takes) + 2):
        step(0)
    assert wire.received == expected
    assert sum(lost) == 0
