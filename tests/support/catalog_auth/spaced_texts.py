"""JSON texts with blanks wherever there may be some, and what a change of one has changed."""

import json
from random import Random
from typing import Any

BLANKS = ["", "", " ", "\n", "\n  ", "\t", "\r\n    "]


def spaced(value: Any, random: Random) -> str:
    """The value with blanks wherever there may be some, and escapes wherever there may be some."""

    def blank() -> str:
        return random.choice(BLANKS)

    if isinstance(value, dict):
        inner = (
            f"{blank()}{spaced(name, random)}{blank()}:{blank()}{spaced(each, random)}{blank()}"
            for name, each in value.items()
        )
        return f"{{{','.join(inner) or blank()}}}"
    if isinstance(value, list):
        return f"[{','.join(f'{blank()}{spaced(e, random)}{blank()}' for e in value) or blank()}]"
    return json.dumps(value, ensure_ascii=random.random() < 0.5)


def change(before: str, after: str) -> tuple[str, str]:
    """The part of `before` that is gone, and the part of `after` that has come in its place: all
    before and behind it is the same."""
    shortest = min(len(before), len(after))
    start = next((n for n in range(shortest) if before[n] != after[n]), shortest)
    rest = range(shortest - start)
    end = next((n for n in rest if before[-1 - n] != after[-1 - n]), shortest - start)
    return before[start : len(before) - end], after[start : len(after) - end]
