"""Files of test data with ids and keys of their own, for `tollgate payments import`.

    version: 1
    apps:
      - {id: …24 hex…, key: …, name: Shop}
    merchants:
      - id: …
        key: …                                  its public key
        currency: DKK
        email: shop@example.com
        website: https://example.com
        descriptor: Coffee & Cake
        company: {country: DK, number: "123"}   number, name, bank: optional
        bank: {iban: DK5000400440116243}
        apps: [ids]                             the first has created it
        transactions:
          - id: …
            currency: EUR
            amount: 300                         minor units, as everywhere
            card: {bin: "410000", last4: "0000", scheme: visa, expiry: 2066-08, code: true}
            descriptor, custom, tds, error: optional; error is a code of part C
            source: …id…                        optional: repeats that transaction, with its card
            trail:
              - {capture: 200, line: …id…}
              - {refund: 120, line: …id…, descriptor: …}
              - {void: 40}
        cards:
          - {id: …, transaction: …, notes: …}
        payouts:
          - {line: …id…, amount: 10, description: …}

YAML or JSON. Lines come of what is in a trail and of payouts, so that the books balance. Every
merchant of an import is a test merchant. What is wrong is refused with the line where it stands.
"""

import re
from collections.abc import Callable
from typing import TypeVar

from tollgate.actors.ledger.law.ids import is_id
from tollgate.actors.ledger.law.values import (
    BookId,
    CardBrand,
    CardSummary,
    EntityId,
    ProcessingError,
)
from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.bodies.constraints import FieldError
from tollgate.serve.payments.imports.drafts import (
    AppDraft,
    CardDraft,
    ImportDraft,
    MerchantDraft,
    MoveDraft,
    PayoutDraft,
    TransactionDraft,
)
from tollgate.serve.payments.network.card import end_of_month_ms
from tollgate.serve.payments.reference.data_file import DataFields, DataNode
from tollgate.serve.payments.reference.tables import ReferenceData
from tollgate.serve.payments.secrets.keys import is_key

VERSION = 1
ENTITIES_MAX = 5_000
TDS = ("", "attempt", "full")
_BIN = re.compile(r"[0-9]{6}")
_LAST4 = re.compile(r"[0-9]{4}")
_EXPIRY = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])")
# The directory numbers the books it opens from 1 upwards; given ids keep out of their way.
_NUMBERED = re.compile(r"[0-9a-f]{8}00[0-9a-f]{14}")

T = TypeVar("T")
Check = Callable[[object, str], T | FieldError]


def read_import(root: DataNode, reference: ReferenceData) -> ImportDraft:
    """The content of a file. Raises DataFileError."""
    return _Reader(reference).whole(root)


class _Reader:
    """Reads one file; remembers the ids that it has seen."""

    def __init__(self, reference: ReferenceData) -> None:
        self._reference = reference
        self._seen: set[str] = set()

    def whole(self, root: DataNode) -> ImportDraft:
        fields = root.fields(("version",), ("apps", "merchants"))
        if fields["version"].integer() != VERSION:
            fields["version"].refuse(f"is not {VERSION}, the version that is understood")
        apps = self._each(fields, "apps", self._app)
        merchants = self._each(fields, "merchants", self._merchant)
        if not apps and not merchants:
            root.refuse("holds neither apps nor merchants")
        return ImportDraft(apps, merchants)

    def _app(self, node: DataNode) -> AppDraft:
        fields = node.fields(("id", "key"), ("name",))
        app = self._new_id(fields["id"])
        return AppDraft(app, _key(fields["key"]), _may(fields, "name", constraints.name))

    def _merchant(self, node: DataNode) -> MerchantDraft:
        fields = node.fields(
            ("id", "key", "currency", "email", "website", "descriptor", "company", "apps"),
            ("name", "bank", "transactions", "cards", "payouts"),
        )
        reference = self._reference
        company = fields["company"].fields(("country",), ("number",))
        bank = fields["bank"].fields((), ("iban",)) if fields.get("bank") else DataFields({})
        merchant = self._new_id(fields["id"])
        if _NUMBERED.fullmatch(merchant):
            fields["id"].refuse("is of those that Tollgate gives: its digits 9 and 10 are 00")
        apps = tuple(_id(item) for item in fields["apps"].items())
        if not apps:
            fields["apps"].refuse("is empty: somebody must have access")
        return MerchantDraft(
            id=BookId(merchant),
            public_key=_key(fields["key"]),
            name=_may(fields, "name", constraints.name),
            currency=_checked(
                fields["currency"],
                lambda value, place: constraints.funding_currency(
                    value, reference.currencies, place
                ),
            ),
            email=_checked(fields["email"], constraints.email),
            website=_checked(fields["website"], constraints.website),
            descriptor=_checked(fields["descriptor"], constraints.descriptor),
            company_country=_checked(
                company["country"],
                lambda value, place: constraints.country(value, reference.countries, place),
            ),
            company_number=_may(company, "number", constraints.company_number),
            iban=_may(
                bank,
                "iban",
                lambda value, place: constraints.iban(value, reference.iban_lengths, place),
            ),
            apps=apps,
            transactions=self._each(fields, "transactions", self._transaction),
            cards=self._each(fields, "cards", self._card),
            payouts=self._each(fields, "payouts", self._payout),
        )

    def _transaction(self, node: DataNode) -> TransactionDraft:
        fields = node.fields(
            ("id", "currency", "amount", "card"),
            ("descriptor", "custom", "tds", "source", "error", "trail"),
        )
        tds, source, custom = fields.text("tds"), fields.get("source"), fields.get("custom")
        if tds not in TDS:
            fields["tds"].refuse(f"{tds!r} is neither attempt nor full")
        return TransactionDraft(
            id=self._new_id(fields["id"]),
            currency=_checked(
                fields["currency"],
                lambda value, place: constraints.currency(value, self._reference.currencies, place),
            ),
            amount=_amount(fields["amount"]),
            card=_card_summary(fields["card"]),
            descriptor=_may(fields, "descriptor", constraints.descriptor),
            custom=_value(custom, constraints.custom) if custom else "",
            tds=tds,
            source=_id(source) if source else None,
            error=self._error(fields.get("error")),
            trail=self._each(fields, "trail", self._move),
        )

    def _error(self, node: DataNode | None) -> ProcessingError | None:
        if node is None:
            return None
        if (code := node.integer()) not in self._reference.errors.by_code:
            node.refuse(f"{code} is no code of a processing error")
        return self._reference.errors.error(code)

    def _move(self, node: DataNode) -> MoveDraft:
        kinds = ("capture", "refund", "void")
        fields = node.fields((), (*kinds, "line", "descriptor"))
        found = [kind for kind in kinds if fields.get(kind)]
        if len(found) != 1:
            node.refuse("is not one of capture, refund and void")
        (kind,), line = found, fields.get("line")
        if (line is None) is not (kind == "void"):
            node.refuse("needs the id of its line" if line is None else "has no line")
        return MoveDraft(
            kind=kind,
            amount=_amount(fields[kind]),
            line=self._new_id(line) if line else None,
            descriptor=_may(fields, "descriptor", constraints.descriptor),
        )

    def _card(self, node: DataNode) -> CardDraft:
        fields = node.fields(("id", "transaction"), ("notes",))
        card = self._new_id(fields["id"])
        return CardDraft(
            card, _id(fields["transaction"]), _may(fields, "notes", constraints.plain_text)
        )

    def _payout(self, node: DataNode) -> PayoutDraft:
        fields = node.fields(("line", "amount"), ("description",))
        line, amount = self._new_id(fields["line"]), _amount(fields["amount"])
        return PayoutDraft(line, amount, _may(fields, "description", constraints.plain_text))

    def _each(self, fields: DataFields, name: str, read: Callable[[DataNode], T]) -> tuple[T, ...]:
        node = fields.get(name)
        return () if node is None else tuple(read(item) for item in node.items())

    def _new_id(self, node: DataNode) -> EntityId:
        found = _id(node)
        if found in self._seen:
            node.refuse(f"{found} is there twice")
        if len(self._seen) >= ENTITIES_MAX:
            node.refuse(f"is one too many: a file holds at most {ENTITIES_MAX} entities")
        self._seen.add(found)
        return found


def _id(node: DataNode) -> EntityId:
    text = node.text()
    if not is_id(text):
        node.refuse(f"{text[:40]!r} is no id: 24 hexadecimal digits in lower case")
    return EntityId(text)


def _key(node: DataNode) -> str:
    text = node.text()
    if not is_key(text):
        # (not repeated here: it may be a secret)
        node.refuse("is no key: 1 to 256 printable characters without blanks")
    return text


def _amount(node: DataNode) -> int:
    return _value(node, constraints.amount)


def _checked(node: DataNode, check: Check[T]) -> T:
    """A text that a constraint takes."""
    return _taken(node, check(node.text(), node.place))


def _value(node: DataNode, check: Check[T]) -> T:
    """A value that a constraint takes."""
    return _taken(node, check(node.value(), node.place))


def _taken(node: DataNode, found: T | FieldError) -> T:
    if isinstance(found, FieldError):
        node.refuse(found.message)
    return found


def _may(fields: DataFields, name: str, check: Check[str]) -> str:
    node = fields.get(name)
    return "" if node is None else _checked(node, check)


def _card_summary(node: DataNode) -> CardSummary:
    fields = node.fields(("bin", "last4", "scheme", "expiry"), ("code",))
    for name, shape, what in (("bin", _BIN, "six digits"), ("last4", _LAST4, "four digits")):
        if not shape.fullmatch(fields.text(name)):
            fields[name].refuse(f"is not {what}")
    schemes = {scheme.value: scheme for scheme in CardBrand}
    if fields.text("scheme") not in schemes:
        fields["scheme"].refuse(f"is not one of {', '.join(schemes)}")
    expiry = _EXPIRY.fullmatch(fields.text("expiry"))
    if expiry is None:
        fields["expiry"].refuse("is not a month such as 2066-08")
    return CardSummary(
        bin=fields.text("bin"),
        last4=fields.text("last4"),
        expiry_ms=end_of_month_ms(int(expiry[1]), int(expiry[2])),
        scheme=schemes[fields.text("scheme")],
        has_code=fields.is_set("code"),
    )
