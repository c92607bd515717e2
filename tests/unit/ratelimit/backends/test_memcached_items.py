"""Names of counters in Memcached, their nodes, values and lifetimes (B6, B11)."""

import pytest

from tollgate.serve.ratelimit.backends.memcached.items import (
    ITEM_NAME_BYTES_MAX,
    count_of,
    expiry,
    item_name,
    node_number,
)

LONGEST = b"d_" + b"x" * (ITEM_NAME_BYTES_MAX - len(b"d__1234")) + b"_1234"


@pytest.mark.parametrize(
    "name", [b"domain_key_value_1234", b"prefix:d_k_\xc3\xa9_0", b"d_files_files/*_1234", LONGEST]
)
def test_a_name_that_memcached_takes_stays_as_it_is(name: bytes) -> None:
    assert item_name(name) == name


@pytest.mark.parametrize(
    "name",
    [LONGEST + b"5", b"d_k_a b_1", b"d_k_a\r\nset x 0 0 1_1", b"d_k_\x00_1", b"d_k_\x7f_1", b"\t"],
)
def test_any_other_name_is_a_digest(name: bytes) -> None:
    digest = item_name(name)
    assert digest.startswith(b"#")
    assert len(digest) <= ITEM_NAME_BYTES_MAX
    assert digest[1:].isalnum()


def test_digests_of_different_counters_differ() -> None:
    names = [b"d_k_%b_%d" % (value, start) for value in (b"a b", b"a  b") for start in (0, 60)]
    assert len({item_name(name) for name in names}) == len(names)


# CRC-32 (IEEE) of the texts, as any other implementation computes it.
@pytest.mark.parametrize(
    ("name", "crc"), [(b"123456789", 0xCBF43926), (b"", 0), (b"a", 0xE8B7BE43)]
)
@pytest.mark.parametrize("nodes", [1, 2, 3, 7])
def test_the_node_is_the_checksum_modulo_the_number_of_nodes(
    name: bytes, crc: int, nodes: int
) -> None:
    assert node_number(name, nodes) == crc % nodes


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (b"0", 0),
        (b"7", 7),
        (b"9 ", 9),
        (b"2147483647", 2**31 - 1),
        (b"2147483648", 0),
        (b"99999999999999999999999999", 0),
        (b"", 0),
        (b"-1", 0),
        (b"seven", 0),
        (b"1.5", 0),
        (b" 1", 0),
        ("٣".encode(), 0),
    ],
)
def test_a_value_that_is_no_count_is_0(value: bytes, count: int) -> None:
    assert count_of(value) == count


@pytest.mark.parametrize(
    ("lifetime_s", "expires"),
    [(1, 1), (86_400, 86_400), (2_592_000, 2_592_000), (2_592_001, 4_592_001)],
)
def test_a_long_lifetime_is_told_as_the_instant_of_its_end(lifetime_s: int, expires: int) -> None:
    # Memcached takes 30 days and a second for the year 1970, and forgets the counter at once.
    assert expiry(lifetime_s, now_s=2_000_000) == expires
