"""Documents on a disk: which files are meant, and what is above a document there.

a file     that file                       -         the standard input
a folder   every .json and .geojson below it that is a catalog document; others are passed over
a pattern  what it matches, `**` included, where the shell has not done so
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from glob import glob, has_magic
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.document.decoding import UnreadableError, decode
from tollgate.serve.catalog_auth.document.document import NO_ANCESTORS, Ancestors, Kind
from tollgate.serve.catalog_auth.verdict.judgement import UnusableDocument

STDIN = "-"
STDIN_NAME = "<stdin>"
SUFFIXES = (".json", ".geojson")
FILE_BYTES_MAX = 256 * 1024 * 1024
ANCESTORS_KEPT_MAX = 256
LEVELS_MAX = 32
Object = dict[str, JsonValue]
_KINDS = frozenset(kind.value for kind in Kind if kind is not Kind.OTHER)


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """A document, read. `path` None: it came from the standard input."""

    name: str
    path: Path | None
    raw: bytes
    root: JsonValue


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file to read. `is_named`: somebody named it, so it is read whatever it is."""

    path: Path | None
    is_named: bool = True

    @property
    def name(self) -> str:
        return STDIN_NAME if self.path is None else str(self.path)


def candidates(names: Sequence[str]) -> tuple[list[Candidate], list[UnusableDocument]]:
    """The files that these names mean, each once, and the names that mean nothing."""
    found: dict[Candidate, None] = {}
    unusable: list[UnusableDocument] = []
    for name in names or (STDIN,):
        meant = list(_meant(name))
        found |= dict.fromkeys(meant)
        if not meant:
            unusable.append(UnusableDocument(name, _why_nothing(name)))
    return list(found), unusable


def read(candidate: Candidate) -> CatalogFile | UnusableDocument | None:
    """The document; None when it is none, and nobody has named it."""
    try:
        raw = _bytes(candidate.path)
    except OSError as error:
        return UnusableDocument(candidate.name, f"cannot be read: {error.strerror or error}")
    if len(raw) > FILE_BYTES_MAX:
        return UnusableDocument(candidate.name, f"is larger than {FILE_BYTES_MAX} bytes")
    try:
        root = decode(raw)
    except UnreadableError as error:
        return UnusableDocument(
            candidate.name, f"is not JSON: {error.reason}", error.line, error.column
        )
    if not candidate.is_named and not _is_catalog_document(root):
        return None
    return CatalogFile(candidate.name, candidate.path, raw, root)


@dataclass(slots=True)
class NearbyAncestors:
    """The documents above one, as its own links tell, as far as they are files."""

    _kept: dict[Path, Object | None] = field(default_factory=dict)

    def of(self, file: CatalogFile) -> Ancestors:
        """Its collection and its catalog; those that are not there are left out."""
        if file.path is None:
            return NO_ANCESTORS
        collection: Object | None = None
        for above in self._upwards(file.root, file.path):
            if above.get("type") == Kind.CATALOG:
                return Ancestors(collection, above)
            if collection is None and above.get("type") == Kind.COLLECTION:
                collection = above
        return Ancestors(collection, None)

    def _upwards(self, root: JsonValue, path: Path) -> Iterator[Object]:
        for _ in range(LEVELS_MAX):
            above = _above(root, path)
            if above is None or (found := self._document(above)) is None:
                return
            yield found
            root, path = found, above

    def _document(self, path: Path) -> Object | None:
        if path not in self._kept:
            if len(self._kept) == ANCESTORS_KEPT_MAX:
                self._kept.clear()
            read_one = read(Candidate(path))
            root = read_one.root if isinstance(read_one, CatalogFile) else None
            self._kept[path] = root if isinstance(root, dict) else None
        return self._kept[path]


def _meant(name: str) -> Iterator[Candidate]:
    if name == STDIN:
        yield Candidate(None)
        return
    path = Path(name)
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.suffix.lower() in SUFFIXES and file.is_file():
                yield Candidate(file, is_named=False)
    elif path.exists() or not has_magic(name):
        yield Candidate(path)
    else:
        yield from (Candidate(Path(each)) for each in sorted(glob(name, recursive=True)))


def _why_nothing(name: str) -> str:
    if Path(name).is_dir():
        return f"holds no files {' or '.join('*' + suffix for suffix in SUFFIXES)}"
    return "matches no file"


def _bytes(path: Path | None) -> bytes:
    if path is None:
        return sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
    with path.open("rb") as file:
        return file.read(FILE_BYTES_MAX + 1)


def _is_catalog_document(root: JsonValue) -> bool:
    return isinstance(root, dict) and (root.get("type") in _KINDS or "stac_version" in root)


def _above(root: JsonValue, path: Path) -> Path | None:
    """The file of the document above: the collection of an item, the parent of anything else."""
    links = root.get("links") if isinstance(root, dict) else None
    for rel in ("collection", "parent"):
        for link in links if isinstance(links, list) else ():
            href = link.get("href") if isinstance(link, dict) and link.get("rel") == rel else None
            if isinstance(href, str) and (found := _file(href, path)) is not None:
                return found
    return None


def _file(href: str, path: Path) -> Path | None:
    """The file that a relative href means."""
    try:
        parts = urlsplit(href)
    except ValueError:
        return None
    if parts.scheme or parts.netloc or not parts.path or "\0" in unquote(parts.path):
        return None
    found = (path.parent / unquote(parts.path)).resolve()
    return found if found.is_file() and found != path.resolve() else None
