"""A row of the table of settings, and the dataclass field that carries it.

A row has one canonical name in the neutral words (`KVSTORE_URL`); the product spelling of each of
its names (`REDIS_URL`) follows from the words below and is never written down (part A,
"Names of settings").
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from tollgate.serve.settings.values import BadValueError, Parser, T

NEUTRAL_TO_PRODUCT = (
    ("KVSTORE", "REDIS"),
    ("ALTCACHE", "MEMCACHE"),
    ("AGENT_STATSD", "DOG_STATSD"),
    ("PULLMETRICS", "PROMETHEUS"),
)
MASK = "*****"


def hidden(value: str) -> str:
    """Stars in place of a secret; empty when there is none."""
    return MASK if value else ""


def without_credentials(value: str) -> str:
    """`redis://user:password@host` without what stands before the last `@`, per element."""
    return ",".join(_mask_element(element) for element in re.split(r",(?=\w+://)", value))


def _mask_element(element: str) -> str:
    credentials, mark, host = element.rpartition("@")
    if not mark:
        return element
    scheme, slashes, _ = credentials.partition("://")
    return f"{scheme}{slashes}{MASK}@{host}" if slashes else f"{MASK}@{host}"


def as_is(value: str) -> str:
    """The text unchanged: it is no secret."""
    return value


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """Values that are good alone and wrong together: the settings involved, and one line."""

    names: tuple[str, ...]
    line: str


@dataclass(frozen=True, slots=True)
class Row:
    """One setting. `default` is text, as an operator would write it; `show` masks a secret."""

    name: str
    parse: Parser[object]
    default: str
    meaning: str
    also: tuple[str, ...] = ()
    show: Callable[[str], str] = as_is

    @property
    def names(self) -> tuple[str, ...]:
        """Every name the setting goes by, the canonical one first."""
        neutral = (self.name, *self.also)
        return tuple(dict.fromkeys((*neutral, *map(product_spelling, neutral))))

    def read(self, spelling: str, value: str) -> object:
        """The value of `value`, or a `BadValueError` with the whole line for the operator."""
        try:
            return self.parse(value)
        except BadValueError as error:
            raise BadValueError(f"{spelling}: {self.show(value)!r} {error}") from None


def product_spelling(name: str) -> str:
    """The name with the product's word in place of the neutral one."""
    for neutral, product in NEUTRAL_TO_PRODUCT:
        if (spelling := _respelled(name, neutral, product)) != name:
            return spelling
    return name


def neutral_spelling(name: str) -> str:
    """The name with the neutral word in place of the product's."""
    for neutral, product in NEUTRAL_TO_PRODUCT:
        if (spelling := _respelled(name, product, neutral)) != name:
            return spelling
    return name


def spelled(name: str, given: Mapping[str, str]) -> str:
    """The name as the environment spells it; one that is not set there in the product's words, if
    all its kin there are. `given`: spellings by canonical name."""
    if name in given:
        return given[name]
    product = product_spelling(name)
    kin = [each for other, each in given.items() if _neutral_word(other) == _neutral_word(name)]
    is_product = bool(kin) and all(neutral_spelling(each) != each for each in kin)
    return product if is_product else name


def _neutral_word(name: str) -> str:
    words = (neutral for neutral, _ in NEUTRAL_TO_PRODUCT)
    return next((word for word in words if _respelled(name, word, "") != name), "")


def _respelled(name: str, word: str, other_word: str) -> str:
    # Only where a name begins: a mogrifier may itself be called REDIS.
    return re.sub(rf"^(USE_)?{word}(?=_|$)", rf"\g<1>{other_word}", name)


def setting(
    name: str,
    parse: Parser[T],
    default: str,
    meaning: str,
    *,
    also: tuple[str, ...] = (),
    show: Callable[[str], str] = as_is,
) -> T:
    """A dataclass field that is a row of the table; its default is the default text's value."""
    row = Row(name, parse, default, meaning, also, show)
    return field(default_factory=lambda: parse(default), metadata={"row": row})


def rows_of(group: type) -> dict[str, Row]:
    """The rows of a group of settings, by attribute."""
    return {item.name: item.metadata["row"] for item in fields(group)}
