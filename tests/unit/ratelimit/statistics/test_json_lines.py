"""Statistics as JSON lines: deltas, absolute gauges, new calls only (B19)."""

import json

from tollgate.actors.ratelimit.statistics.latencies import LATENCY_BOUNDS_S, Latency
from tollgate.actors.ratelimit.statistics.totals import Statistics
from tollgate.serve.ratelimit.sinks.json_lines import NO_STATISTICS, json_lines


def latency(position: int, calls: int) -> Latency:
    counts = [0] * (len(LATENCY_BOUNDS_S) + 1)
    counts[position] = calls
    return Latency(tuple(counts), calls * LATENCY_BOUNDS_S[position])


def lines(before: Statistics, now: Statistics, **tags: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in json_lines(before, now, tags)]


def test_counters_are_deltas_and_zeros_are_left_out() -> None:
    before = Statistics({"a": 3, "b": 7}, {}, {})
    now = Statistics({"a": 5, "b": 7, "c": 1}, {}, {})
    assert lines(before, now) == [
        {"name": "a", "type": "counter", "value": 2},
        {"name": "c", "type": "counter", "value": 1},
    ]


def test_a_counter_that_began_anew() -> None:
    before, now = Statistics({"a": 30}, {}, {}), Statistics({"a": 4}, {}, {})
    assert lines(before, now) == [{"name": "a", "type": "counter", "value": 4}]


def test_gauges_every_time() -> None:
    same = Statistics({}, {"g": 1.5}, {})
    assert lines(same, same) == [{"name": "g", "type": "gauge", "value": 1.5}]


def test_timers_tell_of_new_calls() -> None:
    before = Statistics({}, {}, {"Check": latency(2, 10)})
    now = Statistics({}, {}, {"Check": latency(2, 14)})
    (line,) = lines(before, now)
    assert line["name"] == "ratelimit_server.Check.response_time"
    assert (line["type"], line["count"], line["mean_us"]) == ("timer", 4, 100)
    assert lines(now, now) == []


def test_tags_go_with_every_line() -> None:
    now = Statistics({"a": 1}, {"g": 0}, {"Check": latency(0, 1)})
    assert [line["tags"] for line in lines(NO_STATISTICS, now, env="test")] == [{"env": "test"}] * 3
