"""The content of a file of test data, checked (files.py)."""

from dataclasses import dataclass

from tollgate.actors.ledger.law.values import (
    BookId,
    CardSummary,
    Currency,
    EntityId,
    ProcessingError,
)
from tollgate.serve.payments.reference.currencies import CurrencyEntry


@dataclass(frozen=True, slots=True)
class AppDraft:
    id: EntityId
    key: str
    name: str


@dataclass(frozen=True, slots=True)
class MoveDraft:
    """An entry of a trail. `kind`: capture, refund or void, which has no line."""

    kind: str
    amount: int
    line: EntityId | None
    descriptor: str


@dataclass(frozen=True, slots=True)
class TransactionDraft:
    id: EntityId
    currency: CurrencyEntry
    amount: int
    card: CardSummary
    descriptor: str
    custom: str
    tds: str
    source: EntityId | None
    error: ProcessingError | None
    trail: tuple[MoveDraft, ...]


@dataclass(frozen=True, slots=True)
class CardDraft:
    id: EntityId
    transaction: EntityId
    notes: str


@dataclass(frozen=True, slots=True)
class PayoutDraft:
    line: EntityId
    amount: int
    description: str


@dataclass(frozen=True, slots=True)
class MerchantDraft:
    id: BookId
    public_key: str
    name: str
    currency: Currency
    email: str
    website: str
    descriptor: str
    company_country: str
    company_number: str
    iban: str
    apps: tuple[EntityId, ...]
    transactions: tuple[TransactionDraft, ...]
    cards: tuple[CardDraft, ...]
    payouts: tuple[PayoutDraft, ...]


@dataclass(frozen=True, slots=True)
class ImportDraft:
    """A whole file. No id is there twice."""

    apps: tuple[AppDraft, ...]
    merchants: tuple[MerchantDraft, ...]
