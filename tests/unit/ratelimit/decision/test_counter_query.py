"""Names of counters, read back and asked for."""

import pytest

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.counter_keys import KeyForm
from tollgate.actors.ratelimit.decision.counter_query import (
    CounterLabel,
    keys_of,
    label_of,
    typed_query,
)
from tollgate.actors.ratelimit.rules.descriptors import Entries

LONG = "v" * 200


def key_of(domain: str, entries: Entries, unit: Unit = Unit.HOUR, prefix: str = "p|3:") -> bytes:
    return KeyForm(prefix, domain, entries, unit).key(entries)


@pytest.mark.parametrize(
    ("domain", "entries"),
    [
        ("d", (("k", "v"),)),
        ("a:b|c", (("1:k", "="), ("", "ü:3|"), ("k", ""))),
        ("\ud800", (("k", "1:1:1:"),)),
    ],
)
def test_a_name_reads_as_it_was_written(domain: str, entries: Entries) -> None:
    assert label_of(key_of(domain, entries)) == CounterLabel(Unit.HOUR, domain, entries)


def test_a_digest_says_nothing() -> None:
    assert label_of(key_of("d", (("k", LONG),))) is None


def test_a_query_needs_all_its_entries_and_the_domain() -> None:
    key = key_of("d", (("k", "v"), ("l", "w")))
    assert typed_query("", None, ()).matches(key)
    assert typed_query("", "d", (("l", "w"),)).matches(key)
    assert typed_query("", None, (("k", None), ("l", "w"))).matches(key)
    assert not typed_query("", "other", ()).matches(key)
    assert not typed_query("", "d", (("k", "w"),)).matches(key)
    assert not typed_query("", "d", (("k", "v"), ("m", None))).matches(key)


def test_a_digest_is_found_by_all_of_its_entries() -> None:
    key = key_of("d", (("k", LONG),))
    assert typed_query("p|3:", "d", (("k", LONG),)).matches(key)
    assert typed_query("", None, ()).matches(key)
    assert not typed_query("p|3:", "d", (("k", None),)).matches(key)
    assert not typed_query("p|3:", "d", ()).matches(key)


def test_there_is_a_key_for_each_unit() -> None:
    keys = keys_of("p|3:", "d", (("k", "v"),))
    assert len(set(keys)) == len(Unit)
    assert key_of("d", (("k", "v"),), Unit.WEEK) in keys
