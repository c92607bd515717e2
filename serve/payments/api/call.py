"""A request as handlers see it, read from its ASGI scope once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256

from starlette.types import Receive, Scope

from tollgate.actors.ledger.law.values import NOBODY, EntityId, KeyMode
from tollgate.serve.net.public_addresses import Exposure, exposure_of
from tollgate.serve.net.work_threads import WorkThreads
from tollgate.serve.payments.api.bodies.readers import (
    BODY_BYTES_MAX,
    NO_BODY,
    Body,
    read_body,
    read_query,
    too_large,
)
from tollgate.serve.payments.api.bodies.strict_json import canonical_json
from tollgate.serve.payments.api.rejections import BadRequest, FieldError, Rejection
from tollgate.serve.payments.secrets.generator import SecretGenerator

REQUEST_ID_LENGTH_MAX = 128
ADDRESS_LENGTH_MAX = 64
IDEMPOTENCY_KEY_LENGTH_MAX = 255
BODILESS = frozenset({"GET", "HEAD", "DELETE"})


class CallerGone(Rejection):
    """The caller hung up before the request was whole; nobody reads the reply."""

    status = 400
    code = "CALLER_GONE"


@dataclass(frozen=True, slots=True)
class Headers:
    """The headers that mean something here; empty when absent. `forwarded`: any by which a proxy
    says that it passes a call on."""

    authorization: str | None = None
    accept: str = ""
    content_type: str = ""
    content_encoding: str = ""
    content_length: str = ""
    idempotency_key: str = ""
    request_id: str = ""
    forwarded_for: str = ""
    forwarded: str = ""
    peer: str = ""
    accept_version: str = ""
    host: str = ""
    forwarded_proto: str = ""


_KNOWN = {
    b"authorization": "authorization",
    b"accept": "accept",
    b"content-type": "content_type",
    b"content-encoding": "content_encoding",
    b"content-length": "content_length",
    b"idempotency-key": "idempotency_key",
    b"x-request-id": "request_id",
    b"x-forwarded-for": "forwarded_for",
    b"forwarded": "forwarded",
    b"via": "forwarded",
    b"x-real-ip": "forwarded",
    b"x-forwarded-host": "forwarded",
    b"x-forwarded-proto": "forwarded_proto",
    b"accept-version": "accept_version",
    b"host": "host",
    # What Serve's HAProxy adds behind all that callers sent (`serve/node/environment.py`).
    b"x-tollgate-peer": "peer",
}


def read_headers(scope: Scope) -> Headers:
    """The headers of a request; of one that is there twice, the last."""
    found = {
        _KNOWN[name]: value.decode("latin-1") for name, value in scope["headers"] if name in _KNOWN
    }
    return Headers(**found)


@dataclass(frozen=True, slots=True)
class Caller:
    """The app that calls, and the last characters of the key it uses. `newer_key`: what is told of
    a key that was added after it; empty without one. `expires_ms`: when the key does, if it does;
    `mode`: of a key that is for test or for live merchants alone."""

    app: EntityId
    key_last4: str
    newer_key: str = ""
    expires_ms: int | None = None
    mode: KeyMode | None = None

    def may_touch(self, *, is_test: bool) -> bool:
        """True if the key is for merchants of this kind (T11)."""
        return self.mode is None or (self.mode is KeyMode.TEST) is is_test


ANYBODY = Caller(NOBODY, "")


@dataclass(slots=True)
class CallRecord:
    """What becomes known of a call on its way, for operators: never a secret, nor what its body
    says. `route`: the path as the API's document has it, with the method that it goes by."""

    request_id: str
    method: str = "other"
    route: str = "none"
    app: str = ""
    merchant: str = ""
    operation: str = ""

    def fields(self, status: int, seconds: float) -> dict[str, object]:
        """Of its line in the request log."""
        known = {
            "requestId": self.request_id,
            "method": self.method,
            "route": self.route,
            "app": self.app,
            "merchant": self.merchant,
            "operation": self.operation,
        }
        told = {name: value for name, value in known.items() if value}
        return {**told, "status": status, "duration_us": round(seconds * 1e6)}


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `path` without the prefix and a trailing slash; `ids`: those in it, in order.
    `threads` read large bodies.

    `address`: where it came from, for the audit and for limits. `record`: for operators.
    """

    caller: Caller

    method: str
    path: str
    ids: tuple[str, ...]
    query: bytes
    headers: Headers
    request_id: str
    address: str
    receive: Receive
    threads: WorkThreads
    body_bytes_max: int = BODY_BYTES_MAX
    record: CallRecord = field(default_factory=lambda: CallRecord(""))
    prefix: str = ""

    @property
    def base_url(self) -> str:
        """The address of the API, as this caller called it: for the caller's own browser alone."""
        scheme = "https" if self.headers.forwarded_proto == "https" else "http"
        return f"{scheme}://{self.headers.host}{self.prefix}"

    @property
    def is_write(self) -> bool:
        return self.method not in ("GET", "HEAD")

    @property
    def is_local(self) -> bool:
        """True for a call from this machine that says nothing of a proxy it came through."""
        headers = self.headers
        if headers.forwarded_for or headers.forwarded or headers.forwarded_proto:
            return False
        return exposure_of(self.address.lower()) is Exposure.LOOPBACK

    @property
    def idempotency_key(self) -> str:
        """The caller's key; empty without one. Raises BadRequest."""
        key = self.headers.idempotency_key
        if len(key) > IDEMPOTENCY_KEY_LENGTH_MAX or not (key.isascii() and key.isprintable()):
            raise BadRequest(
                FieldError(
                    "Idempotency-Key",
                    f"must be printable ASCII, at most {IDEMPOTENCY_KEY_LENGTH_MAX} characters",
                )
            )
        return key

    @property
    def query_fields(self) -> Mapping[str, object]:
        """The fields of the query. Raises BadRequest."""
        return read_query(self.query)

    async def body(self) -> Body:
        """The fields of the body. Raises BadRequest, CallerGone, Unavailable."""
        if self.method in BODILESS:
            return NO_BODY
        if self.headers.content_encoding.lower() not in ("", "identity"):
            raise BadRequest(FieldError("", "a compressed body is not taken"))
        raw = await self._raw()
        read = partial(read_body, self.headers.content_type, raw, self.body_bytes_max)
        return await self.threads.run(len(raw), read)

    def fingerprint(self, body: Body) -> str:
        """The identity of a request for an idempotency key: method, path and fields, hashed."""
        text = f"{self.method} {self.path}\n{canonical_json(body.fields)}"
        return sha256(text.encode()).hexdigest()

    async def _raw(self) -> bytes:
        """The body, read no further than its bound."""
        length = self.headers.content_length
        if length.isdecimal() and (len(length) > 10 or int(length) > self.body_bytes_max):
            raise too_large(self.body_bytes_max)
        raw = bytearray()
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise CallerGone("the caller went away")
            raw += message.get("body", b"")
            if len(raw) > self.body_bytes_max:
                raise too_large(self.body_bytes_max)
            if not message.get("more_body", False):
                return bytes(raw)


def request_id_of(headers: Headers, mint: SecretGenerator) -> str:
    """The caller's request id when it is fit to be repeated, else a new one."""
    given = headers.request_id
    is_fit = 0 < len(given) <= REQUEST_ID_LENGTH_MAX and given.isascii() and given.isprintable()
    return given if is_fit else mint.request_id()


@dataclass(frozen=True, slots=True)
class AddressTrust:
    """The relays believed about callers' addresses: `relays`, addresses of Serve's own proxies,
    about their peers, and, if `trusts_forwarded`, those peers about theirs."""

    relays: frozenset[str] = frozenset()
    trusts_forwarded: bool = False


def caller_address(scope: Scope, headers: Headers, trust: AddressTrust) -> str:
    """The address of a caller: the peer's, or the one told by trusted relays. Whatever a header
    held before they wrote into it is the caller's own, and ignored."""
    client = scope.get("client")
    peer: str = client[0] if client else ""
    if peer in trust.relays and headers.peer:
        peer = headers.peer
    if trust.trusts_forwarded and headers.forwarded_for:
        peer = headers.forwarded_for.rpartition(",")[2].strip()
    return peer[:ADDRESS_LENGTH_MAX]
