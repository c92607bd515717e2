"""Texts about a collector for the log, without what its settings keep secret.

The address may have credentials before the host and behind `?`, the exporters' complaints repeat
it and the headers, and a collector may answer with any characters.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from tollgate.serve.settings.rows import MASK
from tollgate.serve.settings.table import OTLP_PREFIX

COMPLAINT_CHARS_MAX = 1_000
# Shorter ones are in every text by chance.
SECRET_CHARS_MIN = 4
_QUERY = re.compile(r"\?[^\s'\")]+")
_USERINFO = re.compile(r"//[^/\s@]*@")
UNREADABLE = "the address of the settings"


def plain_address(address: str) -> str:
    """An address without credentials, query and fragment."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
    except ValueError:
        return UNREADABLE
    if "@" in parts.path + parts.query + parts.fragment:  # of whom, it cannot be told
        return UNREADABLE
    scheme = f"{parts.scheme}://" if parts.scheme else ""
    return _printable(f"{scheme}{parts.netloc.rpartition('@')[2]}{parts.path}")


class CollectorSecrets:
    """The secrets in OpenTelemetry's variables."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        found: set[str] = set()
        for name, value in variables.items():
            kind = name.removeprefix(OTLP_PREFIX).removeprefix("TRACES_")
            if kind == "HEADERS":
                found.update(_of_headers(value))
            elif kind == "ENDPOINT":
                found.update(_of_address(value))
        spelled = {text for secret in found for text in (secret, unquote(secret))}
        spelled |= {repr(text)[1:-1] for text in spelled}
        # The longest first, for one may be a part of another.
        long = (text for text in spelled if len(text) >= SECRET_CHARS_MIN)
        self._secrets = sorted(long, key=len, reverse=True)

    def taken_out_of(self, text: str) -> str:
        """The text without them, on one line."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        text = _USERINFO.sub(f"//{MASK}@", _QUERY.sub(f"?{MASK}", text))
        return _printable(text)[:COMPLAINT_CHARS_MAX]


def _of_headers(value: str) -> set[str]:
    """The values, and the words in them: of `Bearer <token>` the token may be told alone."""
    values = {each.partition("=")[2].strip() for each in value.split(",")}
    return values | {word for each in values for word in unquote(each).split()}


def _of_address(address: str) -> set[str]:
    _, _, rest = address.rpartition("://")
    credentials = rest.rpartition("@")[0]
    query = rest.partition("?")[2]
    return {credentials, *credentials.split(":", 1), query, *re.split("[&=]", query)}


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)
