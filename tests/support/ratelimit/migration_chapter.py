"""The chapter "From envoyproxy/ratelimit" of the manual: what it has people type and set."""

import re
from pathlib import Path

MANUAL = Path(__file__).parents[3] / "docs/ratelimit.md"


def chapter() -> str:
    """Its text."""
    return MANUAL.read_text().split("## From envoyproxy/ratelimit\n")[1].split("\n## ")[0]


def commands() -> list[str]:
    """What it has people type, in order."""
    return re.findall(r"^ +\$ (.+)$", chapter(), re.MULTILINE)


def step(number: int) -> str:
    """The text of a step."""
    (text,) = re.findall(rf"^{number}\. (.*?)(?=^\d\. |^$)", chapter(), re.MULTILINE | re.DOTALL)
    assert isinstance(text, str)
    return text


def settings_of(number: int) -> dict[str, str]:
    """The settings that a step sets."""
    return dict(re.findall(r"`([A-Z_]+)=(\w+)`", step(number)))


def taken_away_in(number: int) -> list[str]:
    """The settings that a step takes away."""
    return re.findall(r"`([A-Z_]+)`", step(number))
