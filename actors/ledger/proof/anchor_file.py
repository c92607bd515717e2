"""The anchor of a day as a signed file, for a place outside the data folder (F7).

    anchor-2026-01-01.ndjson, anchor-2026-01-02.ndjson, …     a series: no day is left out

A file is text, one JSON object per line:

    {"anchor": …}     the anchor, and the SHA-256 of the whole file of the day before
    {"head": …}       for each book with entries since that one: its last entry by the day's end
    {"end": …}        how many lines came before, the SHA-256 of their bytes, and its signature

The signature is Ed25519 over the words "tollgate anchor 1" and the hash. Whoever has the public key
can tell what was signed from what was not, and can sign nothing. Nothing in a file depends on when
or by which process it was written: two that write the same day write the same bytes.
"""

from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Struct, ValidationError
from msgspec.json import Decoder, Encoder

from tollgate.actors.ledger.law.values import BookId

FORMAT = 1
NO_FILE = "0" * 64
LINE_BYTES_MAX = 4_096
_PURPOSE = b"tollgate anchor 1\n"


class SignedAnchor(Struct, frozen=True):
    """See Anchor. `previous`: the SHA-256 of the file of the day before; NO_FILE in the first."""

    format: int
    day: str
    at_ms: int
    books: int
    root: str
    previous: str


class AnchoredHead(Struct, frozen=True):
    """The last entry of a book by the end of the day."""

    book: BookId
    seq: int
    hash: str


class AnchorEnd(Struct, frozen=True):
    """`key`: the public key, hex; it is believed when the reader knows it from elsewhere."""

    lines: int
    sha256: str
    key: str
    signature: str


class AnchorLine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Exactly one of these."""

    anchor: SignedAnchor | None = None
    head: AnchoredHead | None = None
    end: AnchorEnd | None = None


class BrokenAnchorFile(Exception):  # noqa: N818 - what was found, not what went wrong
    """A file is not what was signed; the text is one line that names it."""


_encode = Encoder().encode
_decode = Decoder(AnchorLine).decode


def anchor_files(folder: Path) -> list[Path]:
    """The files of a series, by day; what is called otherwise is none of them."""
    return sorted(file for file in folder.glob("anchor-*.ndjson") if _is_named_so(file))


def file_name(day: str) -> str:
    return f"anchor-{day}.ndjson"


def day_of(file: Path) -> date:
    """The day that its name says."""
    return date.fromisoformat(file.stem.removeprefix("anchor-"))


def digest_of(file: Path) -> str:
    """The SHA-256 of a whole file, by which the next one names it."""
    with file.open("rb") as content:
        return file_digest(content, "sha256").hexdigest()


def _is_named_so(file: Path) -> bool:
    try:
        return file.name == file_name(day_of(file).isoformat())
    except ValueError:
        return False


def public_key_of(key: Ed25519PrivateKey) -> str:
    """Hex, as operators write it down."""
    return key.public_key().public_bytes_raw().hex()


class AnchorText:
    """Makes the lines of a file, one after another, and at last its end."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self._digest = sha256()
        self._lines = 0

    def line(self, line: AnchorLine) -> bytes:
        text = _encode(line) + b"\n"
        self._digest.update(text)
        self._lines += 1
        return text

    def end(self) -> bytes:
        signature = self._key.sign(_PURPOSE + self._digest.digest()).hex()
        end = AnchorEnd(self._lines, self._digest.hexdigest(), public_key_of(self._key), signature)
        return _encode(AnchorLine(end=end)) + b"\n"


def anchor_lines(path: Path, is_trusted: Callable[[str], bool]) -> Iterator[AnchorLine]:
    """The anchor of a file and its heads, when a trusted key has signed them.

    Raises BrokenAnchorFile, at the end at the latest: nothing of it counts before that is reached.
    """
    digest, count = sha256(), 0
    with path.open("rb") as file:
        for text in iter(partial(file.readline, LINE_BYTES_MAX + 1), b""):
            line = _line(path, count + 1, text)
            if (line.anchor is None) == (count == 0):
                raise BrokenAnchorFile(f"{path}, line {count + 1}: a file has one anchor, first")
            if line.end is not None:
                _check_end(path, line.end, count, digest.digest(), is_trusted)
                if file.read(1):
                    raise BrokenAnchorFile(f"{path}: something was added behind its end")
                return
            digest.update(text)
            count += 1
            yield line
    raise BrokenAnchorFile(f"{path}: has no end: it was cut off after line {count}")


def anchor_in(path: Path, is_trusted: Callable[[str], bool]) -> SignedAnchor:
    """The anchor of a file, once all of it was read. Raises BrokenAnchorFile."""
    anchor = None
    for line in anchor_lines(path, is_trusted):
        anchor = line.anchor or anchor
    assert anchor is not None, "a file begins with its anchor"
    return anchor


def _line(path: Path, number: int, text: bytes) -> AnchorLine:
    try:
        line = _decode(text)
    except (ValidationError, ValueError) as error:
        raise BrokenAnchorFile(f"{path}, line {number}: is no line of an anchor: {error}") from None
    if len([each for each in (line.anchor, line.head, line.end) if each is not None]) != 1:
        raise BrokenAnchorFile(f"{path}, line {number}: is no line of an anchor")
    if line.anchor is not None and line.anchor.format != FORMAT:
        raise BrokenAnchorFile(
            f"{path}: has format {line.anchor.format}, and this Tollgate reads {FORMAT}: use a "
            "newer one"
        )
    return line


def _check_end(
    path: Path, end: AnchorEnd, lines: int, digest: bytes, is_trusted: Callable[[str], bool]
) -> None:
    if (end.lines, end.sha256) != (lines, digest.hex()):
        raise BrokenAnchorFile(f"{path}: it was changed: its end does not fit what it holds")
    if not is_trusted(end.key):
        raise BrokenAnchorFile(
            f"{path}: it is signed with the key {end.key}, which is not one of yours"
        )
    try:
        signed = Ed25519PublicKey.from_public_bytes(bytes.fromhex(end.key))
        signed.verify(bytes.fromhex(end.signature), _PURPOSE + digest)
    except (ValueError, InvalidSignature):
        raise BrokenAnchorFile(f"{path}: its signature is not the key's: it was forged") from None
