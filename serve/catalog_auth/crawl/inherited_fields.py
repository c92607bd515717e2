"""The fields that a document inherits from those above it, as a crawl keeps them until it gets to
that document: as texts, each once, and of no document more than the rules ask those above for.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.json import encode

from tollgate.serve.catalog_auth.api.problems import CrawlEnded
from tollgate.serve.catalog_auth.document.decoding import decode
from tollgate.serve.catalog_auth.document.document import NO_ANCESTORS, SCHEMES, Ancestors
from tollgate.serve.catalog_auth.objects.storage_schemes import STORAGE_SCHEMES

FIELDS = (SCHEMES, "item_assets", STORAGE_SCHEMES)


@dataclass(frozen=True, slots=True)
class Lineage:
    """The documents above another, by the texts of their fields; None: there is no such one."""

    collection: bytes | None = None
    catalog: bytes | None = None

    @property
    def size(self) -> int:
        """The bytes of the texts."""
        return len(self.collection or b"") + len(self.catalog or b"")

    def ancestors(self) -> Ancestors:
        """The documents as the rules look at them, as far as they do."""
        if self.collection is None and self.catalog is None:
            return NO_ANCESTORS
        return Ancestors(_fields(self.collection), _fields(self.catalog))


NO_LINEAGE = Lineage()


def inherited_text(root: Mapping[str, object]) -> bytes:
    """The fields of a document that those below it inherit."""
    try:
        return encode({name: root[name] for name in FIELDS if name in root})
    except RecursionError:  # (it could be read, and is too deep to be written)
        return b"{}"


class KeptLineages:
    """The lineages of all documents to come, of at most so many bytes together."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes = 0
        self._bytes_max = bytes_max
        self._counts: Counter[bytes] = Counter()

    def keep(self, lineage: Lineage) -> None:
        """Raises CrawlEnded."""
        for text in _texts(lineage):
            if not self._counts[text]:
                self.bytes += len(text)
            self._counts[text] += 1
        if self.bytes > self._bytes_max:
            told = f"more than {self._bytes_max} bytes of schemes and assets to be inherited"
            raise CrawlEnded(f"{told} wait for the documents that inherit them")

    def release(self, lineage: Lineage) -> None:
        """One document with this lineage is no longer to come."""
        for text in _texts(lineage):
            self._counts[text] -= 1
            if not self._counts[text]:
                del self._counts[text]
                self.bytes -= len(text)


def _texts(lineage: Lineage) -> list[bytes]:
    return [text for text in (lineage.collection, lineage.catalog) if text is not None]


def _fields(text: bytes | None) -> Mapping[str, object] | None:
    if text is None:
        return None
    fields = decode(text)
    assert isinstance(fields, dict), "made so"
    return fields
