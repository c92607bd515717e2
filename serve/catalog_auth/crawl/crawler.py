"""A catalog from one of its documents on: each that its links lead to is judged with its ancestors.

    root, child, collection    leads to a catalog or a collection
    item, items, next          leads to an item, or to a page of items

The first document is judged first, then what it leads to, level by level. What a collection or a
catalog defines is inherited by what its links lead to; an item that is reached otherwise gets its
collection through its own link. One bound ends the crawl, whichever is met first: documents, depth,
bytes, time.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urldefrag, urljoin

from tollgate.actors.kernel.json_value import Json, JsonValue
from tollgate.serve.catalog_auth.api.bulk import BulkSummary, encode_json
from tollgate.serve.catalog_auth.api.problems import CrawlEnded, NotFetched, NotJson, Problem
from tollgate.serve.catalog_auth.document.decoding import UnreadableError, decode
from tollgate.serve.catalog_auth.document.document import NO_ANCESTORS, Ancestors, Kind
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
    ancestors: Ancestors


@dataclass(slots=True)
class _Budget:
    """Documents and bytes that may still be fetched."""

    bounds: CrawlBounds
    documents: int = 0
    total_bytes: int = 0

    async def fetch(self, client: GuardedClient, url: str) -> HttpReply:
        """A document. Raises NotFetched, CrawlEnded."""
        if self.documents == self.bounds.documents_max:
            raise CrawlEnded(f"more than {self.bounds.documents_max} documents")
        self.documents += 1
        left = self.bounds.bytes_max - self.total_bytes
        bytes_max = min(left, self.bounds.document_bytes_max)
        try:
            fetched = await client.call(
                "GET", url, _HEADERS, bytes_max=bytes_max, redirects_max=REDIRECTS_MAX
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
        self.total_bytes += len(fetched.body)
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
    _collections: dict[str, Mapping[str, object]] = field(default_factory=dict)

    async def results(self) -> AsyncGenerator[bytes, None]:
        """A line for each document, and a summary as the last."""
        summary = BulkSummary()
        ended: Problem | None = None
        budget = _Budget(self.bounds)
        self._add(_Stop(self.start, 0, NO_ANCESTORS))
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self.bounds.duration_max_s
        while self._waiting and ended is None:
            stop = self._waiting.popleft()
            result: Json = {"href": stop.url, "depth": stop.depth}
            try:
                async with asyncio.timeout_at(deadline_s):
                    result |= await self._judged(stop, budget)
            except TimeoutError:
                ended = CrawlEnded(f"more than {self.bounds.duration_max_s:g} s")
                continue
            except CrawlEnded as problem:
                ended = problem
                continue
            except Problem as problem:
                result["error"] = problem.members()
            summary.add(result)
            yield encode_json(result) + b"\n"
        last = summary.members(ended)
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
            self._waiting.append(stop)

    async def _judged(self, stop: _Stop, budget: _Budget) -> Json:
        fetched, root = await self._document(stop.url, budget)
        links = list(_links(root, fetched.url))
        self._unread_links += _unread_links(root)
        ancestors = await self._with_collection(root, links, stop.ancestors, budget)
        self._lead_on(stop, root, links, ancestors)
        return await self.threads.run(
            len(fetched.body),
            lambda: judgement_reply(
                judge_value(root, fetched.body, stop.url, self.options, ancestors)
            ),
        )

    async def _document(self, url: str, budget: _Budget) -> tuple[HttpReply, JsonValue]:
        """Raises NotFetched, NotJson, CrawlEnded."""
        fetched = await budget.fetch(self.client, url)
        try:
            return fetched, decode(fetched.body)
        except UnreadableError as error:
            raise NotJson(error.reason, error.line, error.column) from None

    async def _with_collection(
        self,
        root: object,
        links: list[tuple[str, str]],
        ancestors: Ancestors,
        budget: _Budget,
    ) -> Ancestors:
        """The ancestors of an item, with its collection when only its own link tells it."""
        if not isinstance(root, dict) or root.get("type") != Kind.ITEM or ancestors.collection:
            return ancestors
        url = next((url for rel, url in links if rel == "collection"), None)
        if url is None:
            return ancestors
        if url not in self._collections:
            try:
                _, collection = await self._document(url, budget)
            except (NotFetched, NotJson):
                return ancestors
            if not isinstance(collection, dict):
                return ancestors
            if len(self._collections) == COLLECTIONS_KEPT_MAX:
                self._collections.clear()
            self._collections[url] = collection
        return Ancestors(self._collections[url], ancestors.catalog)

    def _lead_on(
        self, stop: _Stop, root: object, links: list[tuple[str, str]], ancestors: Ancestors
    ) -> None:
        if not isinstance(root, dict):
            return
        below = ancestors
        if root.get("type") == Kind.CATALOG:
            below = Ancestors(None, root)
        elif root.get("type") == Kind.COLLECTION:
            below = Ancestors(root, ancestors.catalog)
        for rel, url in links:
            inherited = NO_ANCESTORS if rel in ("root", "collection") else below
            # (the next page of a list is no deeper than the page before)
            depth = stop.depth if rel == "next" else stop.depth + 1
            self._add(_Stop(url, depth, inherited))


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
