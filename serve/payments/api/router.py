"""Paths to handlers: a tree of segments, in which `{…}` stands for an id.

    "" -> merchants -> * -> transactions -> {GET: …, POST: …}

A segment that is spelled out goes before one that stands for an id. A trailing slash means nothing.
Starlette tries its routes one after another, which at fifty routes costs more than the rest of a
request; this takes one step per segment.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from tollgate.serve.payments.api.bodies.readers import BODY_BYTES_MAX
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.parameters import BOUNDS, PAGE, filter_name
from tollgate.serve.payments.api.rejections import NotFound, WrongMethod
from tollgate.serve.payments.api.replies import Reply, Stream

SEGMENTS_MAX = 8
D = TypeVar("D")
Handler = Callable[[D, Call], Awaitable[Reply | Stream]]


class Access(Enum):
    """The kind of credentials that a call takes."""

    APP = "an app's key"
    NOBODY = "none"
    OPERATOR = "the operator's key"


class Voice(Enum):
    """Who is spoken to: it decides how errors are told, and whether scripts of other origins may
    read the reply."""

    SERVERS = "merchants' servers"
    BROWSERS = "customers' browsers"


@dataclass(frozen=True, slots=True)
class Route(Generic[D]):
    """A call: what answers it, and its entry in the API's document. `request`, `reply`: names of
    schemas, empty without a body; `X[]` is a list of X. `is_paged`: it takes the parameters of
    lists, with these `filters`. `required`: parameters of the query without which there is no
    answer. `statuses`: refusals beyond those that its access and its input imply. `query`: further
    parameters, with what they mean. `takes_key`: an Idempotency-Key means something."""

    method: str
    path: str
    answer: Handler[D]
    tag: str
    summary: str
    reply: str = ""
    status: int = 200
    request: str = ""
    is_paged: bool = False
    filters: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    statuses: frozenset[int] = frozenset()
    description: str = ""
    media_type: str = "application/json"
    query: tuple[tuple[str, str], ...] = ()
    takes_key: bool = True
    access: Access = Access.APP
    body_bytes_max: int = BODY_BYTES_MAX
    voice: Voice = Voice.SERVERS

    @property
    def parameters(self) -> tuple[str, ...]:
        """All that its query may name."""
        page = PAGE if self.is_paged else BOUNDS if self.filters else ()
        filters = (filter_name(each) for each in sorted(self.filters))
        return (*page, *filters, *(name for name, _ in self.query))


@dataclass(slots=True)
class _PathNode(Generic[D]):
    children: dict[str, "_PathNode[D]"] = field(default_factory=dict)
    any_id: "_PathNode[D] | None" = None
    methods: dict[str, Route[D]] = field(default_factory=dict)


class RouteTable(Generic[D]):
    """All routes, found by method and path."""

    def __init__(self, routes: Sequence[Route[D]]) -> None:
        self.routes = tuple(routes)
        self._root: _PathNode[D] = _PathNode()
        for route in routes:
            node = self._place(route.path)
            assert route.method not in node.methods, f"{route.method} {route.path} is there twice"
            node.methods[route.method] = route

    def find(self, method: str, path: str) -> tuple[Route[D], tuple[str, ...]]:
        """The route and the ids in the path. Raises NotFound, WrongMethod."""
        node, ids = self._root, []
        for segment in path.split("/", SEGMENTS_MAX)[1:]:
            child = node.children.get(segment)
            if child is None:
                if (child := node.any_id) is None:
                    raise _no_path(path)
                ids.append(segment)
            node = child
        if not node.methods:
            raise _no_path(path)
        route = node.methods.get("GET" if method == "HEAD" else method)
        if route is None:
            raise WrongMethod(_allowed(node.methods))
        return route, tuple(ids)

    def _place(self, path: str) -> _PathNode[D]:
        node = self._root
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                node.any_id = node.any_id or _PathNode()
                node = node.any_id
            else:
                node = node.children.setdefault(segment, _PathNode())
        return node


def _no_path(path: str) -> NotFound:
    return NotFound(f"there is no path {path[:100]}")


def _allowed(methods: dict[str, Route[D]]) -> list[str]:
    return sorted({*methods, "HEAD"} if "GET" in methods else methods)
