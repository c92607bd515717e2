"""The API as an ASGI application: one request in, one reply out, whatever happens in between.

    headers -> path -> credentials -> query -> handler -> reply     a rejection is a reply, too

So is storage that does not answer, whoever asks it on the way: 503, and when to try again.
Only what nobody foresaw leaves as an exception; the application around it answers 500.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from starlette.types import Receive, Scope, Send

from tollgate.actors.ledger.book.documents import moment
from tollgate.actors.ledger.delivery.store import DeliveriesDown
from tollgate.actors.ledger.law.values import OPERATOR
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.store import StorageDown
from tollgate.serve.net.work_threads import WorkThreads
from tollgate.serve.payments.api.call import (
    ANYBODY,
    AddressTrust,
    Call,
    Caller,
    CallerGone,
    CallRecord,
    Headers,
    caller_address,
    read_headers,
    request_id_of,
)
from tollgate.serve.payments.api.checkout import form_payments, frame_routes, payment_routes
from tollgate.serve.payments.api.checkout.browsers import READABLE, browser_error, preflights
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.health import StorageWatch
from tollgate.serve.payments.api.orders import RETRY_AFTER_S
from tollgate.serve.payments.api.parameters import require_known
from tollgate.serve.payments.api.rejections import (
    BadRequest,
    Forbidden,
    NotFound,
    Rejection,
    Unauthorised,
    Unavailable,
)
from tollgate.serve.payments.api.replies import (
    Header,
    Reply,
    Stream,
    accepts_json,
    error_reply,
    rejected,
    send_reply,
)
from tollgate.serve.payments.api.router import Access, Route, RouteTable, Voice
from tollgate.serve.payments.api.routes import (
    apps,
    books,
    deliveries,
    imports,
    merchants,
    network_files,
    operator,
    recovery,
    reports,
    sandbox,
)
from tollgate.serve.payments.api.routes import transactions as transaction_routes
from tollgate.serve.payments.api.routes import webhooks as webhook_routes
from tollgate.serve.payments.secrets.keys import is_same_digest

ROUTES: Sequence[Route[ApiContext]] = (
    *apps.ROUTES,
    *recovery.ROUTES,
    *merchants.ROUTES,
    *transaction_routes.ROUTES,
    *reports.ROUTES,
    *books.ROUTES,
    *webhook_routes.ROUTES,
    *deliveries.ROUTES,
    *payment_routes.ROUTES,
    *form_payments.ROUTES,
    *sandbox.ROUTES,
)
# Of browsers alone, and in no document: what they ask before they call, and pages in frames.
BROWSER_ROUTES: Sequence[Route[ApiContext]] = (*preflights(ROUTES), *frame_routes.ROUTES)
# These have a port and a credential of their own (part G, Operations).
OPERATOR_ROUTES: Sequence[Route[ApiContext]] = (
    *operator.ROUTES,
    *recovery.OPERATOR_ROUTES,
    *imports.ROUTES,
    *network_files.ROUTES,
)


# Tells whoever uses the older of two keys that there is another, whoever made that.
NEWER_KEY_HEADER = b"tollgate-newer-key"
# Tells whoever uses a key that it will expire soon, and from how long before.
KEY_EXPIRES_HEADER = b"tollgate-key-expires"
EXPIRY_TOLD_MS = 14 * 86_400_000
# What is smaller takes less time to read than others may have to wait.
LARGE_BODY_BYTES = 16 * 1024 + 1
REQUEST_ID = "tollgate.request_id"
MERCHANT_PATH = "/merchants/{"
# In the place of a status: of what nobody foresaw, which is answered around this, and of callers
# who have hung up.
INTERNAL_STATUS, GONE_STATUS = 500, 499
VOICE = "tollgate.voice"
STORAGE_AWAY = (StorageDown, DeliveriesDown, StorageError)
NOBODY_ELSE = AddressTrust()


@dataclass(frozen=True, slots=True)
class OperatorKey:
    """The digest and the last characters of the operator's key."""

    digest: str
    last4: str


def _busy() -> Unavailable:
    return Unavailable("as many large bodies as are allowed wait to be read", RETRY_AFTER_S)


class RequestListener(Protocol):
    """Hears of every request."""

    def begin(self, scope: Scope) -> Any:
        """One that came. What it gives is handed to `note`."""

    def note(self, record: CallRecord, status: int, seconds: float, begun: Any) -> None:
        """One that was answered, in that time."""


class Dispatcher:
    """Answers the calls of the API; with the `operator`'s key, the operator's calls and no others.
    `trust`: who says where calls come from. `adds_request_id`: False where the server around it
    does so, as Serve's does. `watch`: hears of storage that does not answer. `meter`: hears of
    every request."""

    def __init__(
        self,
        context: ApiContext,
        operator: OperatorKey | None = None,
        *,
        trust: AddressTrust = NOBODY_ELSE,
        adds_request_id: bool = True,
        watch: StorageWatch | None = None,
        meter: RequestListener | None = None,
    ) -> None:
        self._context = context
        self._watch = watch or StorageWatch(context.clock)
        self._meter = meter
        self._operator = operator
        self._trust = trust
        self._adds_request_id = adds_request_id
        self._threads = WorkThreads("payments-body", LARGE_BODY_BYTES, _busy)
        self.routes = ROUTES if operator is None else OPERATOR_ROUTES
        beside = BROWSER_ROUTES if operator is None else ()
        self._table: RouteTable[ApiContext] = RouteTable((*self.routes, *beside))

    @property
    def context(self) -> ApiContext:
        """The parts that calls are answered with."""
        return self._context

    @property
    def watch(self) -> StorageWatch:
        return self._watch

    @property
    def is_for_customers(self) -> bool:
        """True if these are not the operator's calls."""
        return self._operator is None

    @property
    def fundable(self) -> Sequence[str]:
        """The currencies that a merchant's account can be kept in."""
        return self._context.reference.currencies.fundable

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "the API has no websockets"
        headers = read_headers(scope)
        request_id = scope[REQUEST_ID] = request_id_of(headers, self._context.secrets)
        record = CallRecord(request_id)
        if self._meter is None:
            await self._call(scope, receive, send, headers, record)
            return
        clock, status = self._context.clock, INTERNAL_STATUS
        begun_s, begun = clock.monotonic_s(), self._meter.begin(scope)
        try:
            status = await self._call(scope, receive, send, headers, record)
        finally:
            self._meter.note(record, status, clock.monotonic_s() - begun_s, begun)

    async def _call(
        self, scope: Scope, receive: Receive, send: Send, headers: Headers, record: CallRecord
    ) -> int:
        """Its status; GONE_STATUS when there was nobody to answer any more."""
        request_id = record.request_id
        reply: Reply | Stream
        try:
            reply = await self._answer(scope, receive, headers, record)
        except CallerGone:
            return GONE_STATUS
        except Rejection as rejection:
            reply = self._rejected(rejection, headers, scope)
        except STORAGE_AWAY as error:
            self._watch.note(error)
            away = Unavailable(
                "the storage does not answer at this moment: ask again, with the same "
                "Idempotency-Key if there was one",
                RETRY_AFTER_S,
            )
            reply = self._rejected(away, headers, scope)
        if is_for_browsers(scope):
            reply = replace(reply, headers=(*reply.headers, *READABLE))
        await send_reply(send, reply, self.added(request_id))
        return reply.status if isinstance(reply, Reply) else 200

    def _rejected(self, rejection: Rejection, headers: Headers, scope: Scope) -> Reply:
        if is_for_browsers(scope):
            return browser_error(rejection)
        request_id = str(scope[REQUEST_ID])
        return rejected(rejection, accepts_json=accepts_json(headers.accept), request_id=request_id)

    def request_id(self, scope: Scope) -> str:
        """The id of a request, also of one that is answered beside the dispatcher."""
        known = scope.get(REQUEST_ID)
        return str(known) if known else request_id_of(read_headers(scope), self._context.secrets)

    def address(self, scope: Scope) -> str:
        """Where a request comes from, also one that is answered beside the dispatcher."""
        return caller_address(scope, read_headers(scope), self._trust)

    def added(self, request_id: str) -> str:
        """The request id as it is added to replies: empty when it is not."""
        return request_id if self._adds_request_id else ""

    async def _answer(
        self, scope: Scope, receive: Receive, headers: Headers, record: CallRecord
    ) -> Reply | Stream:
        path = route_path(scope)
        route, ids = self._table.find(scope["method"], path)
        record.method, record.route = route.method, route.path
        if ids and route.path.startswith(MERCHANT_PATH):
            record.merchant = ids[0]
        scope[VOICE] = route.voice
        call = Call(
            caller=await self._caller(route, headers),
            method=scope["method"],
            path=path,
            ids=ids,
            query=scope["query_string"],
            headers=headers,
            request_id=record.request_id,
            address=caller_address(scope, headers, self._trust),
            receive=receive,
            threads=self._threads,
            body_bytes_max=route.body_bytes_max,
            record=record,
            prefix=scope.get("root_path", ""),
        )
        record.app = call.caller.app
        await self._require_known_parameters(route, call)
        try:
            reply = await route.answer(self._context, call)
        except (NotFound, Forbidden):
            # Ids cannot be tried out for nothing.
            if route.access is Access.APP:
                await self._context.count_call(call)
            raise
        if told := list(self._key_headers(call.caller)):
            reply = replace(reply, headers=(*reply.headers, *told))
        return reply

    def _key_headers(self, caller: Caller) -> Iterator[Header]:
        """The news of the key that was used."""
        if caller.newer_key:
            yield NEWER_KEY_HEADER, caller.newer_key.encode("latin-1", "replace")
        expires_ms = caller.expires_ms
        if expires_ms is not None and expires_ms - self._context.now_ms <= EXPIRY_TOLD_MS:
            yield KEY_EXPIRES_HEADER, moment(expires_ms).encode()

    async def _require_known_parameters(self, route: Route[ApiContext], call: Call) -> None:
        """Before anything is done; a refusal counts as a call. Raises BadRequest, TooMany."""
        if not call.query:
            return
        try:
            require_known(call.query_fields, route.parameters)
        except BadRequest:
            if route.access is Access.APP:
                await self._context.count_call(call)
            raise

    async def _caller(self, route: Route[ApiContext], headers: Headers) -> Caller:
        if route.access is Access.APP:
            return await self._context.authentication.caller(headers.authorization)
        if route.access is Access.NOBODY:
            return ANYBODY
        assert self._operator is not None, "the operator's calls are where the key is known"
        digest = self._context.digests.presented(headers.authorization)
        if not is_same_digest(digest, self._operator.digest):
            raise Unauthorised
        return Caller(OPERATOR, self._operator.last4)


def is_for_browsers(scope: Scope) -> bool:
    """True once a call is known to be one of the customers' browsers."""
    return scope.get(VOICE) is Voice.BROWSERS


def route_path(scope: Scope) -> str:
    """The path below the prefix, without a trailing slash."""
    path: str = scope["path"]
    path = path.removeprefix(scope.get("root_path", ""))
    return path[:-1] if path.endswith("/") and path != "/" else path


def internal_error(scope: Scope, request_id: str) -> Reply:
    """The reply to what nobody foresaw; it says nothing of it."""
    return error_reply(
        500,
        "INTERNAL",
        "this should not have happened; the request id finds it in the log",
        accepts_json=accepts_json(read_headers(scope).accept),
        request_id=request_id,
    )
