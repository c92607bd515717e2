"""Reads the names of counters, and finds those that an operator asks for.

The operator knows what stands in the rules and in requests: a domain and entries. A name that was
too long is a digest (`counter_keys.py`): it is found by all of its entries, and never shown.
"""

from dataclasses import dataclass

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.counter_keys import KeyForm
from tollgate.actors.ratelimit.rules.descriptors import Entries


@dataclass(frozen=True, slots=True)
class CounterLabel:
    """A counter's name, taken apart."""

    unit: Unit
    domain: str
    entries: Entries


def label_of(key: bytes) -> CounterLabel | None:
    """The name that a key was made of; None for a digest."""
    if b"|" not in key[:2]:
        return None
    unit, _, rest = key.decode("utf-8", "surrogatepass").partition("|")
    texts = []
    while rest:
        length, _, rest = rest.partition(":")
        texts.append(rest[: int(length)])
        rest = rest[int(length) :]
    _, domain, *entries = texts
    return CounterLabel(
        Unit(int(unit)), domain, tuple(zip(entries[::2], entries[1::2], strict=True))
    )


def limit_unit_of(key: bytes) -> Unit:
    """The unit of a counter's limit, which a digest tells as well."""
    return Unit(int(key[:1]))


def keys_of(prefix: str, domain: str, entries: Entries) -> list[bytes]:
    """The keys of the counters with exactly these entries, one for each unit."""
    return [KeyForm(prefix, domain, entries, unit).key(entries) for unit in Unit]


@dataclass(frozen=True, slots=True)
class CounterQuery:
    """Counters of a domain (None: any) that have all of these entries; a value of None: any."""

    domain: str | None = None
    entries: tuple[tuple[str, str | None], ...] = ()
    digests: frozenset[bytes] = frozenset()
    """Keys that are asked for beside them: of what cannot be read."""

    @property
    def is_any(self) -> bool:
        return self.domain is None and not self.entries

    def matches(self, key: bytes) -> bool:
        """True for the key of a counter that is asked for."""
        if self.is_any or key in self.digests:
            return True
        label = label_of(key)
        if label is None or (self.domain is not None and label.domain != self.domain):
            return False
        return all(
            any(name == wanted and value in (None, each) for name, each in label.entries)
            for wanted, value in self.entries
        )


def typed_query(
    prefix: str, domain: str | None, entries: tuple[tuple[str, str | None], ...]
) -> CounterQuery:
    """The query for what an operator has typed."""
    full = tuple((key, value) for key, value in entries if value is not None)
    is_full = domain is not None and bool(full) and len(full) == len(entries)
    digests = frozenset(keys_of(prefix, domain or "", full)) if is_full else frozenset[bytes]()
    return CounterQuery(domain, entries, digests)
