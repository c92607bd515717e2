"""Statistics as lines of the statsd protocol (B19), in the reference's dialect and in DogStatsD's.

    name.__k=v:3|c         a counter: what was added since the last flush
    name.__k=v:7|g         a gauge: every time
    name.__k=v:1.2|ms|@0.5 response times: a line for each bucket of the histogram, with the share
                           of the calls that it stands for

DogStatsD has its tags at the end, `|#k:v,k:v`, and mogrifiers rewrite names and add tags.

A line for each call, as the reference sends it, would cost more than the decision does. The rate of
a line is chosen so that a receiver counts exactly the calls there were (`1 / rate`), and the values
so that they add up to the time that all calls took.

Names hold request text. What could end a line, a name or a tag is `_` here, whatever was done about
it before.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal

from tollgate.actors.ratelimit.statistics.totals import Flush, times_name
from tollgate.serve.ratelimit.sinks.mogrification import Mogrification
from tollgate.serve.ratelimit.sinks.named_tags import parted

Lines = Callable[[Flush], Iterator[bytes]]
"""The lines of a flush, without their ends."""

# Controls, the separators that Unicode calls line ends, and lone surrogates beside the protocol's.
_LINE_ENDS = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_NOT_IN_NAMES = re.compile(rf"[:|{_LINE_ENDS}]")
_NOT_IN_DOTTED_TAGS = re.compile(rf"[:|.=@#{_LINE_ENDS}]")
_NOT_IN_TAG_NAMES = re.compile(rf"[:|,#{_LINE_ENDS}]")
_NOT_IN_TAG_VALUES = re.compile(rf"[|,#{_LINE_ENDS}]")
# Request text that a receiver would take for a tag of ours.
_LIKE_A_TAG = re.compile(r"\.__[^.]*")


class StatsdLines:
    """Lines with `tags` in their names, sorted by key."""

    def __init__(self, tags: Mapping[str, str]) -> None:
        self._tags = tuple(tags.items())
        self._suffix = _dotted(self._tags)

    def __call__(self, flush: Flush) -> Iterator[bytes]:
        for name, value in _values(flush, resets_before_negative=True):
            head, own = parted(name)
            suffix = _dotted((*self._tags, *own)) if own else self._suffix
            yield f"{_name(head)}{suffix}:{value}".encode()


class DogstatsdLines:
    """Lines with `tags` at their ends, and what the first mogrifier that matches makes of them."""

    def __init__(self, tags: Mapping[str, str], mogrification: Mogrification) -> None:
        self._tags = tuple(sorted(tags.items()))
        self._mogrification = mogrification

    def __call__(self, flush: Flush) -> Iterator[bytes]:
        for name, value in _values(flush, resets_before_negative=False):
            plain, own = parted(name)
            head, added = self._mogrification.apply(_name(plain))
            tags = ",".join(
                f"{_NOT_IN_TAG_NAMES.sub('_', key)}:{_NOT_IN_TAG_VALUES.sub('_', value)}"
                for key, value in (*self._tags, *own, *added)
            )
            tail = f"|#{tags}" if tags else ""
            yield f"{_NOT_IN_NAMES.sub('_', head)}:{value}{tail}".encode()


def _dotted(tags: Iterable[tuple[str, str]]) -> str:
    """Tags as the end of a name, sorted by key."""
    return "".join(
        f".__{_NOT_IN_DOTTED_TAGS.sub('_', key)}={_NOT_IN_DOTTED_TAGS.sub('_', value)}"
        for key, value in sorted(tags)
    )


def _values(flush: Flush, *, resets_before_negative: bool) -> Iterator[tuple[str, str]]:
    """Each statistic with what stands behind the colon, once or several times."""
    for name, number in flush.counters.items():
        yield name, f"{number}|c"
    for name, value in flush.gauges.items():
        if value < 0 and resets_before_negative:
            yield name, "0|g"  # a sign means "so much more or less": below 0 it gets from 0 only
        yield name, f"{_plain(value)}|g"
    for method, latency in flush.latencies.items():
        name = times_name(method)
        for calls, seconds in latency.samples():
            for rate in sample_rates(calls):
                yield name, f"{_plain(round(seconds * 1_000, 6))}|ms{rate}"


def sample_rates(calls: int) -> Iterator[str]:
    """What marks a line that stands for so many calls; several when no number has just this
    reciprocal. Receivers divide, and some of them round down what comes out."""
    while calls > 1:
        part = calls
        while 1 / (1 / part) != part:
            part -= 1
        yield f"|@{_plain(1 / part)}" if part > 1 else ""
        calls -= part
    if calls:
        yield ""


def _name(name: str) -> str:
    if ".__" in name:
        name = _LIKE_A_TAG.sub(lambda found: found[0].replace("=", "_"), name)
    return _NOT_IN_NAMES.sub("_", name)


def _plain(number: float) -> str:
    """Digits without an exponent, which some receivers do not read."""
    if number == int(number):
        return str(int(number))
    return format(Decimal(repr(number)), "f")
