"""No text that a caller sends makes a regular expression take longer than in proportion to it.

An expression holds the interpreter while it searches, and so everybody who is served by the same
process. Each of the code's is tried, in the ways in which the code uses it, on texts that are made
from it: its own words and examples over and over, with an end that spoils them and without.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from time import process_time
from typing import Any, NamedTuple

import pytest

import tollgate.actors
import tollgate.serve

# What is quadratic takes milliseconds for so much, and what is linear some microseconds.
LENGTH = 4_096
SLOW_S = 0.003
# Of what was slow, in a text that is twice as long.
GROWTH_MAX = 3.0
UNITS = ("a", "a.", "1", "-eyJ", "://", " ", "&a=")
CHARACTERS = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}
SPOILERS = ("", "\x00")
WAYS: Mapping[str, Callable[[re.Pattern[Any], Any], object]] = {
    "search": lambda pattern, text: sum(1 for _ in pattern.finditer(text)),
    "match": lambda pattern, text: pattern.match(text),
    "fullmatch": lambda pattern, text: pattern.fullmatch(text),
}
WAY_OF = dict.fromkeys(("search", "finditer", "findall", "sub", "subn", "split"), "search") | {
    each: each for each in ("match", "fullmatch")
}


class Expression(NamedTuple):
    """An expression of the code, and the ways in which it is used."""

    name: str
    pattern: re.Pattern[Any]
    ways: frozenset[str]


def _expressions() -> list[Expression]:
    found: dict[re.Pattern[Any], Expression] = {}
    for package in (tollgate.actors, tollgate.serve):
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if each.name.endswith(".migrations.env"):  # (Alembic's own to import)
                continue
            module = importlib.import_module(each.name)
            source = Path(module.__file__ or "").read_text(encoding="utf-8")
            for name, value in vars(module).items():
                if isinstance(value, re.Pattern):
                    used = re.findall(rf"\b{name}\.(\w+)", source)
                    ways = frozenset(WAY_OF[way] for way in used if way in WAY_OF)
                    before = found[value].ways if value in found else frozenset()
                    found[value] = Expression(f"{each.name}.{name}", value, ways | before)
    return [*found.values()]


def _example(parsed: Any, most: int) -> str:
    """A text that the expression, or a part of it, is likely to match: repeats `most` times, where
    their bounds allow."""
    text = ""
    for code, value in parsed:
        if code is codes.LITERAL:
            text += chr(value)
        elif code is codes.NOT_LITERAL:
            text += "b" if value == ord("a") else "a"
        elif code is codes.IN:
            text += _character(value)
        elif code is codes.ANY:
            text += "a"
        elif code is codes.BRANCH:
            text += _example(value[1][0], most)
        elif code is codes.SUBPATTERN:
            text += _example(value[3], most)
        elif code is codes.ATOMIC_GROUP:
            text += _example(value, most)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            low, high, inner = value
            text += _example(inner, most) * min(max(low, most), int(high), 64)
    return text


def _character(members: Any) -> str:
    """A character of a class."""
    code, _ = members[0]
    if code is codes.NEGATE:
        outside = re.compile(f"[^{re.escape(''.join(_listed(members[1:])))}]")
        return next(filter(outside.match, "a1 -"), "é")
    return _listed(members)[0]


def _listed(members: Any) -> list[str]:
    listed = []
    for code, value in members:
        if code is codes.LITERAL:
            listed.append(chr(value))
        elif code is codes.RANGE:
            listed += [chr(value[0]), chr(value[1])]
        elif code is codes.CATEGORY:
            listed.append(CHARACTERS.get(str(value), "-"))
    return listed


def _parts(parsed: Any) -> Iterator[Any]:
    """The expression, and the alternatives and groups inside it."""
    yield parsed
    for code, value in parsed:
        if code is codes.BRANCH:
            for each in value[1]:
                yield from _parts(each)
        elif code is codes.SUBPATTERN:
            yield from _parts(value[3])
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _parts(value[2])


def _units(pattern: re.Pattern[Any]) -> set[str]:
    """The texts that are repeated: examples of the expression and of its parts, whole and cut."""
    source = pattern.pattern
    text = source.decode("latin-1") if isinstance(source, bytes) else source
    units = set(UNITS)
    for part in _parts(parser.parse(text, pattern.flags & ~re.UNICODE)):
        for most in (0, 2):
            example = _example(part, most)
            units |= {example, example[:-1], f"-{example}"}
    return {each for each in units if each}


def _seconds(pattern: re.Pattern[Any], way: str, text: str) -> float:
    given = text.encode() if isinstance(pattern.pattern, bytes) else text
    begun_s = process_time()
    WAYS[way](pattern, given)
    return process_time() - begun_s


def _slow_text(expression: Expression) -> str | None:
    """The first text for which the expression's time grows faster than its length."""
    pattern = expression.pattern
    for way in sorted(expression.ways):
        for unit in sorted(_units(pattern)):
            for spoiler in SPOILERS:
                times = LENGTH // len(unit)
                text, longer = unit * times + spoiler, unit * times * 2 + spoiler
                if _seconds(pattern, way, text) < SLOW_S:
                    continue
                short_s = min(_seconds(pattern, way, text) for _ in range(2))
                if short_s > SLOW_S and _seconds(pattern, way, longer) > GROWTH_MAX * short_s:
                    return f"{way}: {unit[:80]!r} … {spoiler!r}: {short_s:.4f} s"
    return None


def test_every_expression_takes_time_in_proportion_to_the_text() -> None:
    expressions = _expressions()
    assert len(expressions) > 50
    slow = {each.name: told for each in expressions if (told := _slow_text(each)) is not None}
    assert not slow, "\n".join(f"{name}: {told}" for name, told in slow.items())


@pytest.mark.parametrize(
    ("slow", "way"),
    [
        (r"\b[a-z][a-z0-9+.-]*://[^/?#@\s]*@", "search"),
        (r"\s+$", "search"),
        (r"[a-z]*[a-z1]*x", "fullmatch"),
    ],
)
def test_an_expression_that_is_not_linear_is_found(slow: str, way: str) -> None:
    assert _slow_text(Expression("slow", re.compile(slow), frozenset({way}))) is not None
