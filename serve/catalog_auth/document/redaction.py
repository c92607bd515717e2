"""Keeps secrets that were found in a document out of everything that is said about it.

Messages show values as JSON, cut when they are long: so a secret is looked for as it is, as JSON
writes it, and as what a cut has left of it. Secrets are found by how they begin, so that a message
is read once however many there are.
"""

import json
import re

import msgspec

from tollgate.serve.catalog_auth.document.shown_values import REDACTED_LENGTH, redacted

# A secret that is no longer than this begins nowhere in particular: it would be found everywhere.
_START_LENGTH = REDACTED_LENGTH + 1
_CUT = "…"
# Of secrets that begin alike so many are told apart; of more, whatever begins so is one.
ALIKE_MAX = 64
_END = re.compile(r"[\s\"…]|$")


class Redaction:
    """The secrets of one document."""

    __slots__ = ("_by_start",)

    def __init__(self) -> None:
        self._by_start: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_start)

    def add(self, secret: str) -> None:
        """A secret to keep; one of fewer than 5 characters is part of everything, and stays."""
        for form in (secret, json.dumps(secret, ensure_ascii=False)[1:-1]):
            if len(form) >= _START_LENGTH:
                known = self._by_start.setdefault(form[:_START_LENGTH], [])
                if len(known) < ALIKE_MAX and form not in known:
                    known.append(form)
                    known.sort(key=len, reverse=True)

    def covered(self, message: str) -> str:
        """The message with every secret redacted, and every cut one."""
        parts = []
        done = at = 0
        while at <= len(message) - _START_LENGTH:
            found = self._found(message, at)
            if found is None:
                at += 1
                continue
            secret, end = found
            parts += [message[done:at], redacted(secret)]
            done = at = end
        return "".join([*parts, message[done:]])

    def is_in(self, value: object) -> bool:
        """Tells whether a value of a fix has a secret in it."""
        if value is None:
            return False
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        return any(self._found(text, at) for at in range(len(text) - _START_LENGTH + 1))

    def _found(self, text: str, at: int) -> tuple[str, int] | None:
        """The secret that begins at this place, and where it or what is left of it ends."""
        known = self._by_start.get(text[at : at + _START_LENGTH], ())
        for secret in known:
            if text.startswith(secret, at):
                return secret, at + len(secret)
            cut = text.find(_CUT, at, at + len(secret))
            if cut > at and secret.startswith(text[at:cut]):
                return secret, cut + len(_CUT)
        if len(known) < ALIKE_MAX:
            return None
        rest = _END.search(text, at)
        end = rest.start() if rest else len(text)
        return text[at:end], end
