"""A book's head: what its single writer keeps in memory and goes on from after a restart, and how
its row keeps it.

It is written with every commit, so it holds what every command needs and what stays small; whatever
grows with the trade (transactions, cards, disputes) is an entity of its own.
"""

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import Decoder, Encoder

from tollgate.actors.ledger.law.exponents import stamped_exponent
from tollgate.actors.ledger.law.rows import HeadRow
from tollgate.actors.ledger.law.values import DIRECTORY, BookId, Currency, EntityId, Pricing, Role

GENESIS_HASH = "0" * 64
# Heads are written with every commit, so what they list has an end.
APPS_MAX = 100
USERS_MAX = 1_000
WEBHOOKS_MAX = 20


class Member(Struct, frozen=True):
    """An app with access to a merchant, as the directory knew it when it was added. `role`: not set
    of an owner, here and of users."""

    app: EntityId
    name: str
    created_ms: int
    role: Role | UnsetType = UNSET


class User(Struct, frozen=True):
    """A person who was invited to a merchant."""

    id: EntityId
    email: str
    created_ms: int
    role: Role | UnsetType = UNSET


def given_role(member: Member | User) -> Role:
    """The role of a member."""
    return Role.OWNER if member.role is UNSET else member.role


def kept_role(role: Role | None) -> Role | UnsetType:
    """A role as it is kept; None: an owner's."""
    return UNSET if role in (None, Role.OWNER) else role


class Merchant(Struct, frozen=True):
    """Whose book it is, and who has access to it. Optional texts are empty when absent."""

    public_key: str
    name: str
    currency: Currency
    is_test: bool
    email: str
    website: str
    descriptor: str
    company_country: str
    company_number: str
    iban: str
    pricing: Pricing
    created_ms: int
    apps: tuple[Member, ...]
    users: tuple[User, ...] = ()
    webhooks: tuple[EntityId, ...] = ()
    exponent: int | UnsetType = UNSET
    is_pending: bool | UnsetType = UNSET
    is_rejected: bool | UnsetType = UNSET

    @property
    def may_trade(self) -> bool:
        """Test merchants always, live ones once they are approved; those that are older than
        approvals are (part B, Approval)."""
        return self.is_test or self.is_pending is UNSET

    @property
    def funding_exponent(self) -> int:
        """Of the funding currency, in whose minor units this book counts for ever (M9)."""
        return stamped_exponent(self.currency, self.exponent)

    def has_app(self, app: EntityId) -> bool:
        return any(member.app == app for member in self.apps)

    def role_of(self, app: EntityId) -> Role | None:
        """Of an app; None without access."""
        roles = (given_role(member) for member in self.apps if member.app == app)
        return next(roles, None)

    def has_owner_beside(self, app: EntityId) -> bool:
        """True if an app other than this one is an owner."""
        return any(each.app != app and given_role(each) is Role.OWNER for each in self.apps)


class Head(Struct, frozen=True):
    """The state of a book after the entry `seq`, whose hash is `hash` and whose time is `at_ms`.

    `last_id`: the last that was allocated. `merchant`: None in the directory, and before the book
    is opened. `accounts`: balances in minor units by `<account>:<currency>`. `books`: how many
    merchants' ids the directory has reserved.
    """

    book: BookId
    seq: int
    hash: str
    at_ms: int
    last_id: EntityId
    merchant: Merchant | None
    accounts: Mapping[str, int]
    books: int

    @property
    def is_directory(self) -> bool:
        return self.book == DIRECTORY

    @property
    def is_test(self) -> bool:
        """Of a merchant's book: so is everything in it (T11)."""
        assert self.merchant is not None, "the directory is neither test nor live"
        return self.merchant.is_test


def genesis(book: BookId) -> Head:
    """A book before its first entry."""
    return Head(
        book=book,
        seq=0,
        hash=GENESIS_HASH,
        at_ms=0,
        last_id=EntityId(book),
        merchant=None,
        accounts={},
        books=0,
    )


_encode = Encoder().encode
_decode = Decoder(Head).decode


def row_of_head(head: Head) -> HeadRow:
    """The stored row of a head."""
    return HeadRow(head.book, head.seq, head.hash, _encode(head).decode())


def head_of_row(row: HeadRow) -> Head:
    """The head of a stored row."""
    head = _decode(row.state)
    assert (head.book, head.seq, head.hash) == (row.book, row.seq, row.hash), "a head's row agrees"
    return head
