"""Whether a member that matters here may stand twice in a text: asked of every document, so cheap.

To look for repeated members means to read the text a second time, ten times slower than decoding.
A repetition of what this service looks at leaves a trace that is cheaper to find: there are more
`auth:` members in the text than in the decoded document (of two assets, or two lists of references,
one was lost), or it is within the schemes, a few hundred bytes that can be read again.
"""

import json

import msgspec

from serve.catalog_auth.document import SCHEMES, Document, Kind

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
    if document.kind is Kind.ITEM_COLLECTION:
        # Written again without repetitions it has as many members, in whatever features.
        return raw.count(b'":') != msgspec.json.encode(document.root).count(b'":')
    if not document.is_exact:
        return True
    start = raw.find(_NAME)
    if start < 0:
        return False
    start += len(_NAME)
    excerpt = raw[start : start + _EXCERPT_LENGTH].decode(errors="ignore").lstrip()
    try:
        _reader.raw_decode(excerpt[1:].lstrip())  # (after the colon)
    except json.JSONDecodeError:
        return True  # (cut off)
    except _RepeatedError:
        return True
    return False
