"""Values from text: what each parser takes and what it refuses."""

import pytest

from tollgate.serve.settings.choices import (
    Backend,
    LogLevel,
    RuleSource,
    backend,
    log_level,
    rule_source,
)
from tollgate.serve.settings.values import (
    Address,
    BadValueError,
    Parser,
    address,
    boolean,
    duration,
    duration_ns,
    duration_or_zero,
    header_name,
    mail_sender,
    number,
    pairs,
    peers,
    ratio_float32,
    srv_name,
    url_path,
    waiting_pool,
    whole_number,
    words,
)


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_these_are_true(text: str) -> None:
    assert boolean(text) is True


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_these_are_false(text: str) -> None:
    assert boolean(text) is False


@pytest.mark.parametrize("text", ["", "yes", "no", "on", "tRUE", "fALSE", "2", " true", "true "])
def test_other_words_are_no_boolean(text: str) -> None:
    with pytest.raises(BadValueError, match="neither true nor false"):
        boolean(text)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("10s", 10_000_000_000),
        ("150us", 150_000),
        ("150µs", 150_000),
        ("150μs", 150_000),
        ("7ns", 7),
        ("3ms", 3_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1.5h", 5_400_000_000_000),
        (".5s", 500_000_000),
        ("1.s", 1_000_000_000),
        ("1m1m", 120_000_000_000),
        ("1.9ns", 1),
        ("10", 10_000_000_000),
        ("2.5", 2_500_000_000),
        ("+3s", 3_000_000_000),
        ("-3s", -3_000_000_000),
        ("9223372036854775807ns", 2**63 - 1),
    ],
)
def test_durations_are_read_in_gos_units(text: str, nanoseconds: int) -> None:
    assert duration_ns(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "+",
        ".",
        ".s",
        "s",
        "10 s",
        " 10s",
        "10S",
        "1d",
        "1h30",
        "--1s",
        "1e3s",
        "inf",
        "٣s",
    ],
)
def test_other_texts_are_no_duration(text: str) -> None:
    with pytest.raises(BadValueError, match="is not a duration such as"):
        duration_ns(text)


@pytest.mark.parametrize("text", ["9223372036854775808ns", "300000000h", "9" * 50])
def test_duration_beyond_the_largest(text: str) -> None:
    with pytest.raises(BadValueError, match="more than 292 years"):
        duration_ns(text)


def test_a_duration_may_be_zero_or_within_its_range() -> None:
    parse = duration_or_zero("50ms", "1h")
    assert [parse(text) for text in ("0", "0s", "50ms", "1h")] == [0, 0, 0.05, 3_600]
    for text in ("49ms", "1ns", "61m", "-1s"):
        with pytest.raises(BadValueError, match="between"):
            parse(text)


def test_duration_is_in_seconds_and_within_its_range() -> None:
    parse = duration("1ms", "1m")
    assert parse("1ms") == 0.001
    assert parse("1m") == 60.0
    for text in ("999us", "60.001s", "-5s", "0"):
        with pytest.raises(BadValueError, match="is not a duration between 1ms and 1m"):
            parse(text)


def test_negative_durations_are_refused_by_default() -> None:
    with pytest.raises(BadValueError, match="is not a duration between 0s"):
        duration()("-1s")


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("65535", 65535), ("+7", 7), ("-0", 0)])
def test_whole_numbers_are_read_within_their_bounds(text: str, value: int) -> None:
    assert whole_number(0, 65_535)(text) == value


@pytest.mark.parametrize(
    "text", ["", "abc", "65536", "-1", "1.0", "1_000", " 1", "0x10", "010", "٣", "1" * 5000]
)
def test_whole_numbers_out_of_bounds_are_refused(text: str) -> None:
    with pytest.raises(BadValueError, match="is not a whole number between 0 and 65535"):
        whole_number(0, 65_535)(text)


@pytest.mark.parametrize("text", ["", "nan", "inf", "-0.1", "1.01", "1_0", "0,5", " 1", "1e9999"])
def test_numbers_out_of_bounds_are_refused(text: str) -> None:
    with pytest.raises(BadValueError, match="is not a number between 0 and 1"):
        number(0, 1)(text)


def test_fractions_are_read_in_every_notation() -> None:
    assert [number(0, 1)(text) for text in ("0", "1", ".25", "5e-1", "0.1")] == [
        0,
        1,
        0.25,
        0.5,
        0.1,
    ]


def test_ratio_is_the_nearest_float32() -> None:
    # B7 and D37: 0.7 as a float32 is below 0.7, 0.8 is above it.
    assert ratio_float32("0.7") == 0.699999988079071
    assert ratio_float32("0.8") == 0.800000011920929
    with pytest.raises(BadValueError, match="between 0 and 1"):
        ratio_float32("1.1")


@pytest.mark.parametrize(
    ("text", "value"),
    [("", ()), ("a", ("a",)), ("a,b", ("a", "b")), (" a , b ,", ("a", "b")), (",,", ())],
)
def test_words_are_split_at_commas(text: str, value: tuple[str, ...]) -> None:
    assert words(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ()),
        ("foo:bar,a:b", (("foo", "bar"), ("a", "b"))),
        ("time:10:30", (("time", "10:30"),)),
        ("a:1,b:2,a:3", (("a", "3"), ("b", "2"))),
        (" a : 1 , b:", (("a", "1"), ("b", ""))),
    ],
)
def test_pairs_are_split_at_their_first_separator(
    text: str, value: tuple[tuple[str, str], ...]
) -> None:
    assert pairs(":")(text) == value


def test_pairs_with_equals_signs() -> None:
    assert pairs("=")("k=v,k2=v:2") == (("k", "v"), ("k2", "v:2"))


def test_no_pairs_say_which_item_and_never_what_it_holds() -> None:
    with pytest.raises(BadValueError, match=r"^has an item \(number 2\) not written key:value$"):
        pairs(":")("a:b,secret")
    with pytest.raises(BadValueError, match="number 1"):
        pairs(":")(":b")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (":9090", Address("", 9090)),
        (":0", Address("", 0)),
        ("127.0.0.1:80", Address("127.0.0.1", 80)),
        ("[::1]:9090", Address("::1", 9090)),
    ],
)
def test_addresses_have_host_and_port(text: str, value: Address) -> None:
    assert address(text) == value


@pytest.mark.parametrize(
    "text", ["", "9090", "host", "::1:80", "a b:80", "host:", "host:http", "host:65536", "host:-1"]
)
def test_what_lacks_a_port_is_no_address(text: str) -> None:
    with pytest.raises(BadValueError, match=r"is not an address|has a port that is not"):
        address(text)


def test_peers_are_addresses_in_their_order() -> None:
    assert peers("a:1,b:2") == (Address("a", 1), Address("b", 2))
    assert peers("") == ()


@pytest.mark.parametrize("text", ["a:1,:2", "a:0", "a:1,b"])
def test_one_bad_peer_refuses_all(text: str) -> None:
    with pytest.raises(BadValueError):
        peers(text)


@pytest.mark.parametrize(
    ("parse", "good", "bad"),
    [
        (url_path, "/metrics", "metrics"),
        (url_path, "/a/b", "/a b"),
        (header_name, "X-RateLimit_1", "Rate Limit"),
        (header_name, "a", ""),
        (srv_name, "_memcache._tcp.example.com", "memcache.example.com"),
        (srv_name, "", "_memcache._tcp"),
        (mail_sender, "Tollgate & Co. <tollgate@example.com>", "Tollgate tollgate@example.com"),
        (mail_sender, "tollgate@example.com", "a@example.com, b@example.com"),
        (mail_sender, "", "Tollgate <a@example.com>\r\nBcc: b@example.com"),
        (waiting_pool, "WAIT", "create"),
        (waiting_pool, "anything", "ERROR"),
        (waiting_pool, "", "Error"),
    ],
)
def test_text_keeps_its_shape_or_is_refused(parse: Parser[str], good: str, bad: str) -> None:
    assert parse(good) == good
    with pytest.raises(BadValueError):
        parse(bad)


def test_words_that_ignore_case() -> None:
    assert log_level("warning") is LogLevel.WARN
    assert log_level("TrAcE") is LogLevel.TRACE


def test_words_that_do_not() -> None:
    assert rule_source("GRPC_XDS_SOTW") is RuleSource.XDS
    with pytest.raises(BadValueError, match="is not one of FILE, GRPC_XDS_SOTW"):
        rule_source("file")


def test_backends_in_both_spellings() -> None:
    assert backend("kvstore") is backend("redis") is Backend.KVSTORE
    assert backend("altcache") is backend("memcache") is Backend.ALTCACHE
    assert backend("actors") is Backend.ACTORS
    with pytest.raises(BadValueError, match="actors, kvstore, altcache, redis, memcache"):
        backend("sqlite")
