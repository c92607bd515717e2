"""Lines for statsd and DogStatsD: names that hold anything, tags, values, sample rates."""

import re

import pytest

from tollgate.actors.kernel.latencies import LatencyTally
from tollgate.actors.ratelimit.statistics.totals import Flush
from tollgate.serve.ratelimit.counting_shadow.comparison import ShadowOutcome
from tollgate.serve.ratelimit.sinks.lines import (
    DogstatsdLines,
    Lines,
    StatsdLines,
    sample_rates,
)
from tollgate.serve.ratelimit.sinks.mogrification import Mogrification, Rewriting
from tollgate.serve.settings.outside.expressions import compiled

PLAIN = StatsdLines({})
AGENT = DogstatsdLines({}, Mogrification())


def written(lines: Lines, flush: Flush) -> list[str]:
    return [line.decode() for line in lines(flush)]


def test_a_line_for_each_value() -> None:
    flush = Flush({"a.b": 3}, {"g": 7, "h": 2.5, "tiny": 1e-7}, {})
    expected = ["a.b:3|c", "g:7|g", "h:2.5|g", "tiny:0.0000001|g"]
    assert written(PLAIN, flush) == expected
    assert written(AGENT, flush) == expected


def test_a_negative_gauge_is_no_difference() -> None:
    flush = Flush({}, {"g": -5}, {})
    assert written(PLAIN, flush) == ["g:0|g", "g:-5|g"]
    assert written(AGENT, flush) == ["g:-5|g"]


def test_tags_are_sorted_and_cannot_break_what_they_are_part_of() -> None:
    tags = {"foo": "bar", "a": "b", "z.k": "1.2|3:4=5,6\n7#8"}
    flush = Flush({"n": 1}, {}, {})
    assert written(StatsdLines(tags), flush) == ["n.__a=b.__foo=bar.__z_k=1_2_3_4_5,6_7_8:1|c"]
    assert written(DogstatsdLines(tags, Mogrification()), flush) == [
        "n:1|c|#a:b,foo:bar,z.k:1.2_3:4=5_6_7_8"
    ]


def test_tags_that_a_name_has_are_tags_among_others() -> None:
    flush = Flush({"ratelimit.memcache.add.__code=miss": 1}, {}, {})
    tags = {"foo": "bar", "a": "b"}
    assert written(PLAIN, flush) == ["ratelimit.memcache.add.__code=miss:1|c"]
    assert written(AGENT, flush) == ["ratelimit.memcache.add:1|c|#code:miss"]
    assert written(StatsdLines(tags), flush) == [
        "ratelimit.memcache.add.__a=b.__code=miss.__foo=bar:1|c"
    ]
    rewriting = Rewriting(compiled("^ratelimit.(.*)$"), "$1", ())
    lines = DogstatsdLines(tags, Mogrification([rewriting]))
    assert written(lines, flush) == ["memcache.add:1|c|#a:b,foo:bar,code:miss"]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a:1|c", "a_1_c"),
        ("a\nb:1|c", "a_b_1_c"),
        ("a\r\x00\x85\u2028\ud800b", "a_____b"),
        ("k_ünï", "k_ünï"),
        ("d.__env=prod", "d.__env_prod"),
        ("d.__env=a=b.c=d", "d.__env_a_b.c=d"),
        ("d.k_a@0.1#x,y", "d.k_a@0.1#x,y"),
    ],
)
def test_a_name_is_one_name(name: str, safe: str) -> None:
    for lines in (PLAIN, AGENT):
        assert written(lines, Flush({name: 1}, {}, {})) == [f"{safe}:1|c"]


def test_a_mogrifier_cannot_break_a_line() -> None:
    rewriting = Rewriting(compiled("(.*)"), "x|y:$1", (("k|", "a,$1\n"),))
    lines = DogstatsdLines({}, Mogrification([rewriting]))
    assert written(lines, Flush({"n": 1}, {}, {})) == ["x_y_n:1|c|#k_:a_n_"]


def test_response_times_are_sampled_and_add_up() -> None:
    tally = LatencyTally()
    tally.observe(3, 0.0012)
    tally.observe(1, 0.0018)
    tally.observe(2, 12.0)
    flush = Flush({}, {}, {"Check": tally.value()})
    calls = total_ms = 0.0
    for line in written(PLAIN, flush):
        name, _, rest = line.partition(":")
        value, kind, *rate = rest.split("|")
        assert (name, kind) == ("ratelimit_server.Check.response_time", "ms")
        weight = 1 / float(rate[0].removeprefix("@")) if rate else 1
        calls += weight
        total_ms += weight * float(value)
    assert calls == 6
    assert total_ms == pytest.approx(3 * 1.2 + 1.8 + 24_000)


@pytest.mark.parametrize("calls", [*range(1, 300), 999_999, 10**9 + 7])
def test_a_receiver_that_divides_by_the_rates_finds_all_calls(calls: int) -> None:
    found = 0
    for rate in sample_rates(calls):
        assert re.fullmatch(r"|\|@0\.[0-9]+", rate), "some read digits and a point alone"
        share = 1 / float(rate[2:]) if rate else 1.0
        assert share == int(share), "some round down"
        found += int(share)
    assert found == calls


# Mogrifiers


@pytest.mark.parametrize(
    ("name", "rewritten", "tags"),
    [
        ("rl.shop.hits", "hits", (("domain", "shop"),)),
        ("other", "other", ()),
    ],
)
def test_what_matches_is_rewritten(
    name: str, rewritten: str, tags: tuple[tuple[str, str], ...]
) -> None:
    rewriting = Rewriting(compiled(r"^rl\.([^.]+)\.(.+)$"), "$2", (("domain", "$1"),))
    assert Mogrification([rewriting]).apply(name) == (rewritten, tags)


def test_what_a_second_place_would_say_is_sent_as_other_counters_are() -> None:
    flush = Flush({each.value: 2 for each in (ShadowOutcome.AGREES, ShadowOutcome.DROPPED)}, {}, {})
    expected = ["ratelimit.counting_shadow.agrees:2|c", "ratelimit.counting_shadow.dropped:2|c"]
    assert written(PLAIN, flush) == expected
    assert written(AGENT, flush) == expected


def test_a_pattern_that_backtracks_elsewhere_takes_one_look_at_a_name() -> None:
    pattern = compiled(r"^rl" + r"(.*\.)" * 12 + "over_limit$")
    name = "rl" + "." * 20_000
    assert Mogrification([Rewriting(pattern, "$1")]).apply(name) == (name, ())


def test_groups_that_are_not_there_stay_as_they_are() -> None:
    rewriting = Rewriting(compiled("(a)(b)(x)?"), "$0-$1$2-$3-$5-$99999", (("t", "$3"),))
    assert Mogrification([rewriting]).apply("-ab-") == ("ab-ab--$5-$99999", ())


def test_the_first_that_matches_wins() -> None:
    first, second = Rewriting(compiled("a"), "first"), Rewriting(compiled("a|b"), "second")
    both = Mogrification([first, second])
    assert [both.apply(name)[0] for name in ("a", "b", "a")] == ["first", "second", "first"]
