"""The parts of a call that is being traced, noted where they happen and made spans of elsewhere.

What is awaited on behalf of a call runs in its context, so nobody hands the list on. Calls that are
not traced have none, and then noting a part costs one look.
"""

from contextvars import ContextVar
from typing import NamedTuple

PARTS_MAX = 32


class CallPart(NamedTuple):
    """Something that a call waited for. Times are monotonic, in seconds. `failure` empty: it went
    well."""

    name: str
    begun_s: float
    ended_s: float
    attributes: tuple[tuple[str, str], ...] = ()
    failure: str = ""


PARTS: ContextVar[list[CallPart] | None] = ContextVar("call_parts", default=None)
"""Of the call of this context; None when it is not traced."""


def note_part(parts: list[CallPart] | None, part: CallPart) -> None:
    """Adds a part, as far as there is room."""
    if parts is not None and len(parts) < PARTS_MAX:
        parts.append(part)
