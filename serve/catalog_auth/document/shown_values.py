"""Values of a document as messages show them: short, printable, and secrets never whole."""

import json

# A value in a message is cut after so many characters.
SHOWN_LENGTH_MAX = 80
# Of a secret, so many characters are shown.
REDACTED_LENGTH = 4


def redacted(secret: str) -> str:
    """A secret as messages show it: its length, and its first 4 characters when that is at most
    half of it."""
    start = secret[:REDACTED_LENGTH] if len(secret) >= 2 * REDACTED_LENGTH else ""
    return f"{_printable(start)}… ({len(secret)} characters)"


def shown(value: object) -> str:
    """A value for a message: as JSON, cut when it is long, control characters escaped."""
    if isinstance(value, str):
        # Escaping only lengthens a text: what is beyond the cut need not be looked at.
        text = _printable(json.dumps(value[: SHOWN_LENGTH_MAX + 1], ensure_ascii=False))
    elif isinstance(value, dict):
        text = f"an object of {len(value)} member{'s' * (len(value) > 1)}" if value else "{}"
    elif isinstance(value, list):
        text = f"a list of {len(value)}" if value else "[]"
    else:
        text = json.dumps(value)
    if len(text) <= SHOWN_LENGTH_MAX:
        return text
    return f"{text[:SHOWN_LENGTH_MAX]}…"


def _printable(text: str) -> str:
    """Control characters, and those that turn or hide text, as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
