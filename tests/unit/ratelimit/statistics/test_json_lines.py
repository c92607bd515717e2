"""Statistics as JSON lines: what was added, absolute gauges, new calls (B19)."""

import json

from tollgate.actors.kernel.latencies import LATENCY_BOUNDS_S, Latency
from tollgate.actors.ratelimit.statistics.totals import Flush
from tollgate.serve.ratelimit.sinks.json_lines import json_lines


def latency(position: int, calls: int) -> Latency:
    counts = [0] * (len(LATENCY_BOUNDS_S) + 1)
    counts[position] = calls
    return Latency(tuple(counts), calls * LATENCY_BOUNDS_S[position])


def lines(flush: Flush, **tags: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in json_lines(flush, tags)]


def test_counters_are_what_was_added() -> None:
    assert lines(Flush({"b": 2, "a": 1}, {}, {})) == [
        {"name": "a", "type": "counter", "value": 1},
        {"name": "b", "type": "counter", "value": 2},
    ]


def test_gauges_as_they_are() -> None:
    assert lines(Flush({}, {"g": 1.5}, {})) == [{"name": "g", "type": "gauge", "value": 1.5}]


def test_timers_tell_of_the_calls() -> None:
    (line,) = lines(Flush({}, {}, {"Check": latency(2, 4)}))
    assert line["name"] == "ratelimit_server.Check.response_time"
    assert (line["type"], line["count"], line["mean_us"]) == ("timer", 4, 100)


def test_tags_go_with_every_line() -> None:
    flush = Flush({"a": 1}, {"g": 0}, {"Check": latency(0, 1)})
    assert [line["tags"] for line in lines(flush, env="test")] == [{"env": "test"}] * 3
