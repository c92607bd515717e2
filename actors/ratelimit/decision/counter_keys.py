"""Names counters, and chooses the partitions that own them (B6).

    unit "|", then prefix, domain and each entry's key and value as <length>:<text>

No two rules can share a name (part A). The window is not part of it: a partition keeps the counters
of each window apart.

In a store outside of Tollgate, which others may read and write too, a counter has the reference's
name:

    prefix, domain "_", key "_" value "_" of each entry, start of the window in seconds

Separators are not escaped and the unit is not part of it, so two rules may share a counter there. A
hit is planned before its window is known: so its key is the unit and "|", for the window follows
from them, and then the name but for the start.
"""

from collections.abc import Sequence
from hashlib import blake2b

from tollgate.actors.ratelimit.counting.windows import LENGTH_S, Unit, Window, window_at
from tollgate.actors.ratelimit.rules.descriptors import Entries

KEY_BYTES_MAX = 128
OUTSIDE_NAME_BEGINS = 2  # behind the unit's digit, and the bar
UNIT_SLOTS = 8  # units are numbered 1 to 7 on the wire: partition * 8 + unit is unique


class KeyForm:
    """The keys of all counters of one limit: what is the same in them, and blanks for values.

    `entries` name the counter, with None for a value that each request brings along; the pattern of
    a shared rule stands in the place of the value. A key longer than KEY_BYTES_MAX is replaced by
    its digest (behind `#`), so that a counter costs a bounded amount of memory.
    """

    __slots__ = ("_after", "_blanks", "_literals", "_only", "_unit")

    def __init__(
        self, prefix: str, domain: str, entries: Sequence[tuple[str, str | None]], unit: Unit
    ) -> None:
        self._unit = unit
        self._blanks: list[int] = []
        self._literals: list[str] = []
        literal = f"{unit:d}|{len(prefix)}:{prefix}{len(domain)}:{domain}"
        for position, (key, value) in enumerate(entries):
            literal = f"{literal}{len(key)}:{key}"
            if value is None:
                self._literals.append(literal)
                self._blanks.append(position)
                literal = ""
            else:
                literal = f"{literal}{len(value)}:{value}"
        self._after = literal
        # Most have one blank: then it is filled in without a loop.
        self._only = (self._literals[0], self._blanks[0]) if len(self._blanks) == 1 else None

    def key(self, entries: Entries) -> bytes:
        """The key of the counter of these entries, whose values fill the blanks."""
        if self._only is not None:
            literal, position = self._only
            value = entries[position][1]
            return self._short(f"{literal}{len(value)}:{value}{self._after}")
        text = ""
        for literal, position in zip(self._literals, self._blanks, strict=True):
            value = entries[position][1]
            text = f"{text}{literal}{len(value)}:{value}"
        return self._short(text + self._after)

    def _short(self, text: str) -> bytes:
        key = text.encode("utf-8", "surrogatepass")
        if len(key) <= KEY_BYTES_MAX:
            return key
        return b"%d#" % self._unit + blake2b(key, digest_size=32).digest()


class OutsideKeyForm:
    """The keys of all counters of one limit in a store outside, as `KeyForm`."""

    __slots__ = ("_after", "_blanks", "_literals")

    def __init__(
        self, prefix: str, domain: str, entries: Sequence[tuple[str, str | None]], unit: Unit
    ) -> None:
        self._blanks: list[int] = []
        self._literals: list[str] = []
        literal = f"{unit:d}|{prefix}{domain}_"
        for position, (key, value) in enumerate(entries):
            literal = f"{literal}{key}_"
            if value is None:
                self._literals.append(literal)
                self._blanks.append(position)
                literal = "_"
            else:
                literal = f"{literal}{value}_"
        self._after = literal

    def key(self, entries: Entries) -> bytes:
        """The key of the counter of these entries, whose values fill the blanks."""
        text = ""
        for literal, position in zip(self._literals, self._blanks, strict=True):
            text = f"{text}{literal}{entries[position][1]}"
        return (text + self._after).encode("utf-8", "surrogatepass")


def window_ending(key: bytes, end_s: int, *, has_calendar_months: bool) -> Window:
    """The window of the key's unit that ends then."""
    unit = Unit(key[0] - ord("0"))
    if unit is Unit.MONTH and has_calendar_months:
        return window_at(unit, end_s - 1, has_calendar_months=True)
    return Window(end_s - LENGTH_S[unit], end_s)


def counter_name(key: bytes, start_s: int) -> bytes:
    """The name of the key's counter in the window that begins then."""
    return b"%b%d" % (key[OUTSIDE_NAME_BEGINS:], start_s)
