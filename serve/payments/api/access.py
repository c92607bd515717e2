"""Authentication of callers, and their membership of merchants (A1, A2, part G).

    Basic credentials -> digest of the key -> its app (401) -> the app's membership (403)

Both answers are remembered for `REMEMBERED_S`, the ones that say yes only: so a key or a membership
that is taken away still works for so long at most, and not at all in the process that took it away,
nor for any change, because books ask their own members again.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

from msgspec import UNSET, Struct
from msgspec.json import decode

from tollgate.actors.kernel.bounded_cache import LruCache
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.book.documents import moment
from tollgate.actors.ledger.book.entities import App, AppKey, entity_of_row
from tollgate.actors.ledger.law.roles import Act, forbidden_words, may
from tollgate.actors.ledger.law.values import BookId, EntityId, Role
from tollgate.actors.ledger.storage.store import KeyOwner, ReadStore
from tollgate.serve.payments.api.call import Caller
from tollgate.serve.payments.api.rejections import Forbidden, KeyExpired, Unauthorised
from tollgate.serve.payments.secrets.key_uses import KeyUses
from tollgate.serve.payments.secrets.keys import KeyDigests, is_same_digest

REMEMBERED_S = 1.0
REMEMBERED_MAX = 10_000

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Membership(Struct):
    """An app in a merchant's list: an owner has no role."""

    role: Role = Role.OWNER


class ExpiringCache(Generic[K, V]):
    """Remembers values for a time, at most so many."""

    def __init__(self, clock: Clock, seconds: float, entries_max: int) -> None:
        self._clock = clock
        self._seconds = seconds
        self._entries_max = entries_max
        self._entries: LruCache[K, tuple[V, float]] = LruCache(entries_max)

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None or entry[1] <= self._clock.monotonic_s():
            return None
        return entry[0]

    def put(self, key: K, value: V) -> None:
        self._entries.put(key, (value, self._clock.monotonic_s() + self._seconds))

    def clear(self) -> None:
        self._entries = LruCache(self._entries_max)


def _newer_key(app: App, key: AppKey) -> str:
    """Of the app's newest key for the same merchants as this one, or for some of them, when this
    one is not it: its last characters and its age."""
    newest = [each for each in app.keys if UNSET in (key.mode, each.mode) or each.mode is key.mode]
    if newest[-1].digest == key.digest:
        return ""
    return f"{newest[-1].last4}; created={moment(newest[-1].created_ms)}"


class Authentication:
    """Finds callers and their memberships."""

    def __init__(self, store: ReadStore, digests: KeyDigests, uses: KeyUses, clock: Clock) -> None:
        self._store = store
        self._digests = digests
        self._uses = uses
        self._clock = clock
        self._callers: ExpiringCache[str, Caller] = ExpiringCache(
            clock, REMEMBERED_S, REMEMBERED_MAX
        )
        self._members: ExpiringCache[tuple[BookId, EntityId], Role] = ExpiringCache(
            clock, REMEMBERED_S, REMEMBERED_MAX
        )

    async def caller(self, authorization: str | None) -> Caller:
        """The owner of the key. Raises Unauthorised, which does not tell unknown from malformed."""
        digest = self._digests.presented(authorization)
        caller = await self._caller(digest)
        if caller.expires_ms is not None and caller.expires_ms <= self._clock.now_s() * 1000:
            raise KeyExpired(moment(caller.expires_ms))
        self._uses.note(digest)
        return caller

    async def _caller(self, digest: str) -> Caller:
        if (known := self._callers.get(digest)) is not None:
            return known
        owner = await self._store.key_owner(digest)
        if owner is None or not is_same_digest(owner.digest, digest):
            raise Unauthorised
        caller = await self._holder(owner)
        self._callers.put(digest, caller)
        return caller

    async def _holder(self, owner: KeyOwner) -> Caller:
        row = await self._store.entity("app", owner.app)
        app = None if row is None else entity_of_row(row)
        assert isinstance(app, App), "a live key is an app's"
        key = next((each for each in app.keys if each.digest == owner.digest), None)
        if key is None:
            raise Unauthorised  # (it was ended between the two reads)
        return Caller(
            app=owner.app,
            key_last4=owner.last4,
            newer_key=_newer_key(app, key),
            expires_ms=None if key.expires_ms is UNSET else key.expires_ms,
            mode=None if key.mode is UNSET else key.mode,
        )

    async def require_member(self, book: BookId, app: EntityId, act: Act) -> None:
        """Checks that the app has access to the merchant, and a role for this. Raises Forbidden."""
        role = self._members.get((book, app))
        if role is None:
            document = await self._store.membership(book, app)
            if document is None:
                raise Forbidden("your app has no access to this merchant")
            role = decode(document, type=_Membership).role
            self._members.put((book, app), role)
        if not may(role, act):
            raise Forbidden(forbidden_words(role))

    def forget(self) -> None:
        """After a key or a membership was taken away."""
        self._callers.clear()
        self._members.clear()
