"""The notation of `decisions/*.yaml`, which is that of docs/ratelimit.md, part C.

A case has an id, rules (rule-file text), a policy and steps; a step has some of

    at       the clock, from here on              reload   rules that take the place of the old ones
    preload  a request whose answer is of no interest; sums of statistics begin after it
    ask      a request: `domain [k=v,k2=v2] [k=v]h3 [k=v]!5/h h=2`; `-` is the empty domain,
             h is the addend (h-3 gives 3 back), ! an override
    times    how often it is asked
    answer   `<overall>: <status>, <status>`, or `refused: <text>`; a status is `none`, `unlimited`,
             `OVER` or `OK r=4`, each with more to compare: `limit=10/MINUTE name=x reset=26`
    answers  one answer per call instead
    deltas   per metric key, what each call counts: th, ol, nl, wl, sm, lc, nh as in part C, and dnf
    total    the same, summed up since the beginning or the last preload
    service  service counters that each call counts, by their last name (default: none)
    headers, metadata  of each answer            cache    gauges of the local cache afterwards
    store    the error of every counter partition from here on; null: they answer
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.ratelimit.engine import entries, rule_stats
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.plan import Refusal
from tollgate.actors.ratelimit.decision.policy import FailureMode, HeaderNames, Policy
from tollgate.actors.ratelimit.decision.response import (
    OVER_LIMIT,
    UNLIMITED,
    RateLimitDecision,
    Status,
)
from tollgate.actors.ratelimit.rules.descriptors import (
    Override,
    RateLimitDescriptor,
    RateLimitRequest,
)
from tollgate.actors.ratelimit.statistics.tallies import StatisticsDelta

UNITS = {
    "s": Unit.SECOND,
    "m": Unit.MINUTE,
    "h": Unit.HOUR,
    "d": Unit.DAY,
    "w": Unit.WEEK,
    "mo": Unit.MONTH,
    "y": Unit.YEAR,
}
STATS = {
    "total_hits": "th",
    "over_limit": "ol",
    "near_limit": "nl",
    "within_limit": "wl",
    "shadow_mode": "sm",
    "over_limit_with_local_cache": "lc",
    "total_negative_hits": "nh",
}
_DESCRIPTOR = re.compile(r"\[([^\]]*)\](?:h(-?)(\d+))?(?:!(\d+)/(\S+))?")

Step = Mapping[str, Any]
Stats = dict[str, Counter[str]]


@dataclass(frozen=True, slots=True)
class Case:
    """One conformance case."""

    id: str
    rules: str | None
    policy: Policy
    steps: list[Step]


def cases(folder: Path) -> Iterator[Case]:
    """Every case of every file in the folder."""
    for file in sorted(folder.glob("*.yaml")):
        for case in yaml.safe_load(file.read_text(encoding="utf-8"))["cases"]:
            yield Case(
                str(case["id"]), case["rules"], _policy(case.get("policy", {})), case["steps"]
            )


def _policy(settings: Mapping[str, Any]) -> Policy:
    makers: dict[str, Callable[[Any], Any]] = {
        "headers": lambda names: HeaderNames(**names),
        "failure_mode": FailureMode,
    }
    return Policy(**{name: makers.get(name, _as_it_is)(value) for name, value in settings.items()})


def _as_it_is(value: Any) -> Any:
    return value


def request(text: str) -> RateLimitRequest:
    """The request in the notation above."""
    domain, _, rest = text.partition(" ")
    addend = re.search(r" h=(\d+)$", text)
    descriptors = tuple(_descriptor(*found.groups()) for found in _DESCRIPTOR.finditer(rest))
    return RateLimitRequest(
        "" if domain == "-" else domain, descriptors, int(addend[1]) if addend else 0
    )


def _descriptor(
    text: str, sign: str, addend: str | None, amount: str | None, unit: str
) -> RateLimitDescriptor:
    return RateLimitDescriptor(
        entries(text),
        override=None if amount is None else Override(int(amount), UNITS.get(unit)),
        hits_addend=None if addend is None else int(addend),
        is_negative_hits=bool(sign),
    )


def answered(answer: RateLimitDecision | Refusal, expected: str) -> str:
    """The answer, written with as much detail as what is expected."""
    if isinstance(answer, Refusal):
        return f"refused: {answer.message}"
    wanted = expected.partition(": ")[2].split(", ")[: len(answer.statuses)]
    wanted += [""] * (len(answer.statuses) - len(wanted))
    shown = map(_shown, answer.statuses, wanted)
    return f"{_code(answer.overall)}: {', '.join(shown)}"


def _shown(status: Status, wanted: str) -> str:
    if status.hit is None:
        assert status.reset_s == 0, "there is no reset without a limit"
        return "unlimited" if status == UNLIMITED else "none" if status.remaining == 0 else "?"
    limit, _, name = status.hit.limit_wire.decode().partition(" ")
    details = {"r": status.remaining, "limit": limit, "name": name, "reset": status.reset_s}
    words = [_code(status.code)]
    words += [f"{key}={details[key]}" for key in re.findall(r"(\w+)=", wanted)]
    if status.code == OVER_LIMIT:
        assert status.remaining == 0, "nothing remains of a limit that is exceeded"
    return " ".join(words)


def _code(code: int) -> str:
    return "OVER" if code == OVER_LIMIT else "OK"


def counted(delta: StatisticsDelta) -> Stats:
    """What was counted per metric key or domain."""
    stats = {
        key: Counter({STATS[stat]: by for stat, by in stats.items()})
        for key, stats in rule_stats(delta).items()
    }
    return stats | {domain: Counter(dnf=by) for domain, by in delta.unknown_domains.items()}


def summed(stats: Stats, more: Stats) -> Stats:
    """Both together."""
    return {key: stats.get(key, Counter()) + more.get(key, Counter()) for key in stats | more}


def expected_stats(texts: Mapping[str, str]) -> Stats:
    """Statistics in the notation above."""
    found = {key: re.findall(r"([a-z]+)(\d+)", text) for key, text in texts.items()}
    return {key: Counter({stat: int(by) for stat, by in stats}) for key, stats in found.items()}
