"""Cheap doubt about repeated members: tells for every text whether a thorough look is worth it.

To look for repeated members means to read the text a second time, ten times slower than decoding.
A repetition of what this service looks at leaves a trace that is cheaper to find: there are more
`auth:` members in the text than in the decoded document (of two assets, or two lists of references,
one was lost), or it is within the schemes, a few hundred bytes that can be read again.
"""

import json

from tollgate.serve.catalog_auth.document.document import SCHEMES, Document

_NAME = json.dumps(SCHEMES).encode()
# Schemes are rarely longer; of longer ones everything is read again.
_EXCERPT_LENGTH = 4_096


class _RepeatedError(Exception):
    """A member stands twice."""


def _refuse_repeated(members: list[tuple[str, object]]) -> None:
    if len({name for name, _ in members}) < len(members):
        raise _RepeatedError


_reader = json.JSONDecoder(object_pairs_hook=_refuse_repeated)


def may_repeat(raw: bytes, document: Document) -> bool:
    """False when no `auth:` member, nothing on the way to one, and nothing within the schemes is
    repeated; true when it is worth to look."""
    if not document.is_exact:
        return True
    start = raw.find(_NAME)
    while start >= 0:
        start += len(_NAME)
        if _is_suspect(raw[start : start + _EXCERPT_LENGTH].decode(errors="ignore")):
            return True
        start = raw.find(_NAME, start)
    return False


def _is_suspect(excerpt: str) -> bool:
    """Whether the schemes that begin here, after a colon, have a member twice, or do not end."""
    try:
        _reader.raw_decode(excerpt.lstrip()[1:].lstrip())
    except (json.JSONDecodeError, _RepeatedError):
        return True
    return False
