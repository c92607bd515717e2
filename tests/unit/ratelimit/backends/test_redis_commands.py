"""Hits as commands of Redis, byte for byte, and replies as counts."""

import pytest
from redis.exceptions import OutOfMemoryError, ResponseError

from tollgate.actors.ratelimit.counting.counters import LimitedHits, Unreachable
from tollgate.serve.ratelimit.backends.redis.cluster_table import named_nodes, slot_table
from tollgate.serve.ratelimit.backends.redis.commands import (
    INT64_MAX,
    REFUND_SHA,
    Command,
    Naming,
    Pipeline,
    count_of,
    key_of,
    loading,
    packed,
    shaped,
)
from tollgate.serve.settings.values import Address

NAMING = Naming(has_calendar_months=False, jitter_max_s=300, draw=lambda bound: bound - 200)


def commands_of(hits: LimitedHits, naming: Naming = NAMING) -> list[Command]:
    pipeline = Pipeline(naming)
    pipeline.add_hits(hits)
    return pipeline.commands


def test_a_hit_is_counted_and_expires_later_by_chance() -> None:
    assert commands_of(LimitedHits(1_260, [b"2|d_k_v_"], [3], [10])) == [
        (b"INCRBY", b"d_k_v_1200", 3),
        (b"EXPIRE", b"d_k_v_1200", 60 + 100),
    ]
    plain = Naming(has_calendar_months=False, jitter_max_s=0, draw=lambda bound: 1 // 0)
    assert commands_of(LimitedHits(1_235, [b"1|d_"], [1], [10]), plain) == [
        (b"INCRBY", b"d_1234", 1),
        (b"EXPIRE", b"d_1234", 1),
    ]


def test_a_calendar_month_expires_with_its_own_length() -> None:
    march_begins, april_begins = 1_709_251_200, 1_711_929_600
    naming = Naming(has_calendar_months=True, jitter_max_s=0, draw=int)
    assert commands_of(LimitedHits(april_begins, [b"5|d_"], [1], [10]), naming) == [
        (b"INCRBY", b"d_%d" % march_begins, 1),
        (b"EXPIRE", b"d_%d" % march_begins, 31 * 86_400),
    ]


def test_a_look_reads_and_a_refund_is_a_script() -> None:
    commands = commands_of(LimitedHits(1_260, [b"2|a_", b"2|b_"], [0, -4], [10, 10]))
    assert commands == [(b"GET", b"a_1200"), (b"EVALSHA", REFUND_SHA, 1, b"b_1200", 4)]
    assert [key_of(each) for each in commands] == [b"a_1200", b"b_1200"]
    assert key_of(loading(commands[1])) == b"b_1200"
    assert commands_of(LimitedHits(1_260, [], [], [])) == []


def test_commands_are_sent_with_the_lengths_of_their_words() -> None:
    assert packed([(b"INCRBY", "é".encode(), 10), (b"PING",)]) == (
        b"*3\r\n$6\r\nINCRBY\r\n$2\r\n\xc3\xa9\r\n$2\r\n10\r\n*1\r\n$4\r\nPING\r\n"
    )


def test_counts_are_found_among_the_replies() -> None:
    pipeline = Pipeline(NAMING)
    pipeline.add_hits(LimitedHits(1_260, [b"2|a_", b"2|b_", b"2|c_"], [1, 0, -1], [9, 9, 9]))
    assert pipeline.counts([7, 1, b"3", 2]) == [7, 3, 2]
    batch = [LimitedHits(1, [b"a"], [1], [1]), LimitedHits(1, [b"b", b"c"], [1, 1], [1, 1])]
    assert shaped(batch, [1, 2, 3]) == [[1], [2, 3]]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (b"text", "ERR value is not an integer or out of range"),
        (ResponseError("no code"), "no code"),
        (ResponseError("WRONGTYPE Operation", status_code="WRONGTYPE"), "WRONGTYPE Operation"),
        (OutOfMemoryError("full", status_code="OOM"), "OOM full"),
    ],
)
def test_a_reply_without_a_count_is_the_reason(reply: object, text: str) -> None:
    found = count_of(reply)
    assert isinstance(found, Unreachable)
    assert str(found) == text


def test_no_hit_is_more_than_redis_takes() -> None:
    pipeline = Pipeline(NAMING)
    addends = [2**64 - 50, INT64_MAX, -(2**64)]
    pipeline.add_hits(LimitedHits(1_260, [b"2|a_", b"2|b_", b"2|c_"], addends, [9, 9, 9]))
    told = [each[-1] for each in pipeline.commands if each[0] != b"EXPIRE"]
    assert told == [INT64_MAX, INT64_MAX, INT64_MAX]
    assert pipeline.counts([INT64_MAX, 1, 7, 1, 0]) == [2**64 - 50, 7, 0]
    full = ResponseError("increment or decrement would overflow", status_code="ERR")
    assert pipeline.counts([full, 1, full, 1, 0]) == [2**64 - 50, INT64_MAX, 0]
    away = pipeline.counts([ResponseError("no"), 1, 7, 1, 0])[0]
    assert isinstance(away, Unreachable)


def test_an_error_in_answer_to_an_expiry_is_found() -> None:
    pipeline = Pipeline(NAMING)
    pipeline.add_hits(LimitedHits(1_260, [b"2|a_", b"2|b_"], [1, 1], [9, 9]))
    error = ResponseError("NOPERM")
    assert pipeline.expiry_error([1, 1, 2, error]) is error
    assert pipeline.expiry_error([1, 1, error, error]) is None, "the hit itself was not counted"
    assert pipeline.expiry_error([1, 1, 2, 1]) is None


def test_no_reply_is_no_counter() -> None:
    assert count_of(None) == 0


def test_slots_belong_to_the_masters_of_the_table() -> None:
    table = [[0, 1, [b"10.0.0.1", 7001, b"id"], [b"10.0.0.9", 7009]], [16_383, 16_383, [b"", 7002]]]
    slots, members = slot_table(table, "seed")
    assert slots[:3] == [Address("10.0.0.1", 7001)] * 2 + [None]
    assert slots[-1] == Address("seed", 7002)
    assert len(slots) == 16_384
    assert members == {
        Address("10.0.0.1", 7001),
        Address("10.0.0.9", 7009),
        Address("seed", 7002),
    }


def test_nodes_without_slots_are_named_too() -> None:
    lines = (
        b"a1 10.0.0.1:7001@17001,one.example,shard-id=x myself,master - 0 0 1 connected 0-5\n"
        b"a2 :7002@17002 master - 0 0 2 connected\n"
        b"a3 fe80::1:7003@17003 slave a1 0 0 1 connected\n"
        b"odd\na4 nothing,\n"
    )
    assert named_nodes(lines, "seed") == {
        Address("10.0.0.1", 7001),
        Address("one.example", 7001),
        Address("seed", 7002),
        Address("fe80::1", 7003),
    }
    for none in (None, ResponseError("NOPERM"), b"\xff \xff", b""):
        assert not named_nodes(none, "seed")


@pytest.mark.parametrize(
    "row",
    [
        7,
        [],
        [0, 1],
        [0, 1, b"10.0.0.1"],
        [0, 1, [b"10.0.0.1"]],
        [0, 1, [b"10.0.0.1", b"x"]],
        [0, 1, [b"10.0.0.1", 7001], 7],
        [0, 1, [b"\xff", 7001]],
        [0, 16_384, [b"10.0.0.1", 7001]],
        [-1, 1, [b"10.0.0.1", 7001]],
        [0, 2**62, [b"10.0.0.1", 7001]],
    ],
)
def test_a_table_that_is_none_is_refused(row: object) -> None:
    with pytest.raises(ValueError, match=r"is no range of slots|is no node|utf-8"):
        slot_table([row], "seed")
