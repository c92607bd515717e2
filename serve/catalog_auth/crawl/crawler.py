"""A catalog from one of its documents on: each that its links lead to is judged with its ancestors.

    root, child, collection    leads to a catalog or a collection
    item, items, next          leads to an item, or to a page of items

The first document is judged first, then what it leads to, level by level. What a collection or a
catalog defines is inherited by what its links lead to; an item that is reached otherwise gets its
collection through its own link. One bound ends the crawl, whichever is met first: documents, depth,
bytes, time, or what is kept to be inherited. Whatever was read counts, good for something or not.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from urllib.parse import urldefrag, urljoin

from tollgate.actors.kernel.json_value import Json, JsonValue
from tollgate.serve.catalog_auth.api.bulk import BulkSummary, encode_json
from tollgate.serve.catalog_auth.api.problems import (
    CrawlEnded,
    NotFetched,
    NotJson,
    Problem,
    TooLarge,
)
from tollgate.serve.catalog_auth.crawl.inherited_fields import (
    NO_LINEAGE,
    KeptLineages,
    Lineage,
    inherited_text,
)
from tollgate.serve.catalog_auth.document.decoding import (
    FETCHED_VALUES_MAX,
    TooMuchError,
    UnreadableError,
    decode_foreign,
)
from tollgate.serve.catalog_auth.document.document import Kind
from tollgate.serve.catalog_auth.verdict.judgement import judge_value, judgement_reply
from tollgate.serve.catalog_auth.verdict.report import Options
from tollgate.serve.net.guarded_client import (
    BodyTooLongError,
    CallError,
    CallRefusedError,
    GuardedClient,
    HttpReply,
    TargetPolicy,
    TargetRefusal,
)
from tollgate.serve.net.work_threads import WorkThreads

FOLLOWED = ("root", "child", "item", "collection", "items", "next")
LINKS_PER_DOCUMENT_MAX = 10_000
REDIRECTS_MAX = 5
# Collections that were fetched for the sake of an item, kept for the next.
COLLECTIONS_KEPT_MAX = 64
COLLECTIONS_KEPT_BYTES_MAX = 8 * 1024 * 1024
# Of the bytes that a crawl may read, and never less than a megabyte: kept to be inherited.
INHERITED_SHARE, INHERITED_BYTES_MIN = 4, 1024 * 1024
_HEADERS = {
    "Accept": "application/geo+json, application/json;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip",
    "User-Agent": "Tollgate-catalog-auth",
}
_SETTINGS = {
    TargetRefusal.NOT_HTTPS: " (CATALOG_CRAWL_ALLOW_HTTP)",
    TargetRefusal.PRIVATE: " (CATALOG_CRAWL_ALLOW_PRIVATE)",
}


@dataclass(frozen=True, slots=True)
class CrawlBounds:
    """The bounds that end a crawl."""

    documents_max: int
    depth_max: int
    bytes_max: int
    document_bytes_max: int
    duration_max_s: float


@dataclass(frozen=True, slots=True)
class CrawlSetup:
    """The addresses that crawls may call, the time for each call, and the end of a crawl."""

    policy: TargetPolicy
    call_timeout_s: float
    bounds: CrawlBounds


def refusal_text(refusal: TargetRefusal) -> str:
    """The reason why an address is not called, with the setting that would allow it."""
    return f"the address {refusal.value}{_SETTINGS.get(refusal, '')}"


@dataclass(frozen=True, slots=True)
class _Stop:
    """A document to come."""

    url: str
    depth: int
    lineage: Lineage


@dataclass(frozen=True, slots=True)
class _Page:
    """A document that was read. `url`: where it came from in the end; `links`: those to follow.
    `inherited`: what it hands on, if it is a catalog or a collection."""

    url: str
    raw: bytes
    root: JsonValue
    links: list[tuple[str, str]]
    unread_links: int
    kind: object
    inherited: bytes


@dataclass(slots=True)
class _Budget:
    """Documents and bytes that may still be fetched."""

    bounds: CrawlBounds
    documents: int = 0
    total_bytes: int = 0

    def count(self, number: int) -> None:
        """So many bytes more were read."""
        self.total_bytes += number

    async def fetch(self, client: GuardedClient, url: str) -> HttpReply:
        """A document. Raises NotFetched, CrawlEnded."""
        if self.documents == self.bounds.documents_max:
            raise CrawlEnded(f"more than {self.bounds.documents_max} documents")
        self.documents += 1
        left = self.bounds.bytes_max - self.total_bytes
        if left <= 0:
            raise CrawlEnded(f"more than {self.bounds.bytes_max} bytes")
        bytes_max = min(left, self.bounds.document_bytes_max)
        try:
            fetched = await client.call(
                "GET",
                url,
                _HEADERS,
                bytes_max=bytes_max,
                redirects_max=REDIRECTS_MAX,
                count=self.count,
            )
        except BodyTooLongError as error:
            if left < self.bounds.document_bytes_max:
                raise CrawlEnded(f"more than {self.bounds.bytes_max} bytes") from None
            raise NotFetched(str(error)) from None
        except CallRefusedError as error:
            raise NotFetched(refusal_text(error.refusal)) from None
        except CallError as error:
            raise NotFetched(str(error)) from None
        if fetched.status != 200:
            raise NotFetched(f"HTTP status {fetched.status}")
        return fetched


@dataclass(slots=True)
class Crawl:
    """One crawl from `start`."""

    start: str
    client: GuardedClient
    options: Options
    bounds: CrawlBounds
    threads: WorkThreads
    _waiting: deque[_Stop] = field(default_factory=deque)
    _seen: set[str] = field(default_factory=set)
    _too_deep: set[str] = field(default_factory=set)
    _unread_links: int = 0
    _collections: dict[str, bytes | None] = field(default_factory=dict)
    _kept: KeptLineages = field(init=False)

    def __post_init__(self) -> None:
        share = self.bounds.bytes_max // INHERITED_SHARE
        self._kept = KeptLineages(max(share, INHERITED_BYTES_MIN))

    async def results(self) -> AsyncGenerator[bytes, None]:
        """A line for each document, and a summary as the last."""
        summary = BulkSummary()
        ended: Problem | None = None
        is_all_read = True
        budget = _Budget(self.bounds)
        self._add(_Stop(self.start, 0, NO_LINEAGE))
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self.bounds.duration_max_s
        while self._waiting and ended is None:
            stop = self._waiting.popleft()
            self._kept.release(stop.lineage)
            result: Json = {"href": stop.url, "depth": stop.depth}
            line = b""
            try:
                async with asyncio.timeout_at(deadline_s):
                    judged, line = await self._judged(stop, budget, result)
                    result |= judged
            except TimeoutError:
                ended = CrawlEnded(f"more than {self.bounds.duration_max_s:g} s")
                continue
            except CrawlEnded as problem:
                ended = problem
                continue
            except Problem as problem:
                result["error"] = problem.members()
                is_all_read = False
            summary.add(result)
            yield line or encode_json(result) + b"\n"
        last = summary.members(ended)
        # (what links lead on from a document that was not read, nobody knows)
        last["summary"]["complete"] &= is_all_read
        if left_out := len(self._too_deep - self._seen):
            last["summary"] |= {"complete": False, "left_out_by_depth": left_out}
        if self._unread_links:
            last["summary"] |= {"complete": False, "links_not_read": self._unread_links}
        yield encode_json(last) + b"\n"

    def _add(self, stop: _Stop) -> None:
        """Once per address; the first to lead there says what is inherited. One more than may be
        fetched is enough to show that there are more."""
        if stop.depth > self.bounds.depth_max:
            if len(self._too_deep) < self.bounds.documents_max:
                self._too_deep.add(stop.url)
        elif stop.url not in self._seen and len(self._seen) <= self.bounds.documents_max:
            self._seen.add(stop.url)
            self._kept.keep(stop.lineage)
            self._waiting.append(stop)

    async def _judged(self, stop: _Stop, budget: _Budget, about: Json) -> tuple[Json, bytes]:
        """The verdict on a document, and the line that says it: both are made beside the loop."""
        page = await self._page(stop.url, budget)
        self._unread_links += page.unread_links
        lineage = await self._with_collection(page, stop.lineage, budget)
        self._lead_on(stop, page, lineage)

        def judged() -> tuple[Json, bytes]:
            ancestors = lineage.ancestors()
            found = judge_value(page.root, page.raw, stop.url, self.options, ancestors)
            reply = judgement_reply(found)
            return reply, encode_json(about | reply) + b"\n"

        return await self.threads.run(len(page.raw) + lineage.size, judged)

    async def _page(self, url: str, budget: _Budget) -> _Page:
        """Raises NotFetched, NotJson, TooLarge, CrawlEnded, BusyProblem."""
        fetched = await budget.fetch(self.client, url)
        return await self.threads.run(len(fetched.body), lambda: _read(fetched))

    async def _with_collection(self, page: _Page, lineage: Lineage, budget: _Budget) -> Lineage:
        """The lineage of an item, with its collection when only its own link tells it."""
        if page.kind != Kind.ITEM or lineage.collection is not None:
            return lineage
        url = next((url for rel, url in page.links if rel == "collection"), None)
        if url is None:
            return lineage
        if url not in self._collections:
            self._keep_collection(url, await self._collection(url, budget))
        return Lineage(self._collections[url], lineage.catalog)

    async def _collection(self, url: str, budget: _Budget) -> bytes | None:
        """What a collection hands on; None: it cannot be read."""
        try:
            page = await self._page(url, budget)
        except CrawlEnded:
            raise
        except Problem:
            return None
        return page.inherited if isinstance(page.root, dict) else None

    def _keep_collection(self, url: str, text: bytes | None) -> None:
        kept_bytes = sum(len(each or b"") for each in self._collections.values())
        if (
            len(self._collections) == COLLECTIONS_KEPT_MAX
            or kept_bytes + len(text or b"") > COLLECTIONS_KEPT_BYTES_MAX
        ):
            self._collections.clear()
        self._collections[url] = text

    def _lead_on(self, stop: _Stop, page: _Page, lineage: Lineage) -> None:
        below = lineage
        if page.kind == Kind.CATALOG:
            below = Lineage(None, page.inherited)
        elif page.kind == Kind.COLLECTION:
            below = Lineage(page.inherited, lineage.catalog)
        for rel, url in page.links:
            inherited = NO_LINEAGE if rel in ("root", "collection") else below
            # (the next page of a list is no deeper than the page before)
            depth = stop.depth if rel == "next" else stop.depth + 1
            self._add(_Stop(url, depth, inherited))


def _read(fetched: HttpReply) -> _Page:
    """Raises NotJson, TooLarge."""
    try:
        root = decode_foreign(fetched.body, FETCHED_VALUES_MAX)
    except TooMuchError as error:
        raise TooLarge(f"{error.reason}, and is not read: nor is what its links lead to") from None
    except UnreadableError as error:
        raise NotJson(error.reason, error.line, error.column) from None
    fields = root if isinstance(root, dict) else {}
    links = list(_links(root, fetched.url))
    inherited = inherited_text(fields)
    kind = fields.get("type")
    return _Page(fetched.url, fetched.body, root, links, _unread_links(root), kind, inherited)


def _unread_links(root: object) -> int:
    links = root.get("links") if isinstance(root, dict) else None
    return max(0, len(links) - LINKS_PER_DOCUMENT_MAX) if isinstance(links, list) else 0


def _links(root: object, url: str) -> Iterator[tuple[str, str]]:
    """The links to follow: rel and absolute address."""
    links = root.get("links") if isinstance(root, dict) else None
    for link in links[:LINKS_PER_DOCUMENT_MAX] if isinstance(links, list) else ():
        if not isinstance(link, dict) or str(link.get("method", "GET")).upper() != "GET":
            continue
        rel, href = link.get("rel"), link.get("href")
        if isinstance(rel, str) and rel in FOLLOWED and isinstance(href, str):
            try:
                yield rel, urldefrag(urljoin(url, href)).url
            except ValueError:  # (an address in brackets that is none)
                continue
