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
from typing import Annotated, Self, get_args, get_origin

from pydantic import AfterValidator, PlainValidator, WithJsonSchema, model_validator
from pydantic.fields import FieldInfo

from tollgate.actors.ledger.law.values import CardBrand, CardSummary, EntityId, ProcessingError
from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.payments.api.bodies import wire_types as wire
from tollgate.serve.payments.api.bodies.model_reader import RequestBody, read_model
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.bodies.requests import MerchantCreate
from tollgate.serve.payments.api.rejections import BadRequest, FieldError
from tollgate.serve.payments.network.card import end_of_month_ms
from tollgate.serve.payments.reference.data_file import DataNode
from tollgate.serve.payments.reference.tables import ReferenceData
from tollgate.serve.payments.secrets.keys import is_key

VERSION = 1
ENTITIES_MAX = 5_000
SCHEMES = [scheme.value for scheme in CardBrand]
NEW_IDS = frozenset({"id", "line"})
# A field of new merchants that is not in files: theirs are test merchants.
NOT_IN_FILES = "test"


def _like(fits: Callable[[str], object], why: str) -> PlainValidator:
    """A check of texts. A text is not repeated in its refusal: it may be a secret."""
    return wire.checked(
        lambda value, _: value if isinstance(value, str) and fits(value) else FieldError("", why)
    )


def _version(value: object, reading: wire.Reading) -> int | FieldError:
    del reading
    if type(value) is not int or value != VERSION:
        return FieldError("", f"is not {VERSION}, the version that is understood")
    return value


def _error(value: object, reading: wire.Reading) -> ProcessingError | FieldError:
    known = reading.reference.errors.by_code
    if type(value) is not int or value not in known:
        return FieldError("", f"{value} is no code of a processing error")
    return known[value].error


def _not_numbered(merchant: EntityId) -> EntityId:
    """The directory numbers the books that it opens from 1 upwards; given ids keep out of their
    way."""
    if merchant[8:10] == "00":
        why = "is of those that Tollgate gives: its digits 9 and 10 are 00"
        raise wire.field_refusal(FieldError("", why))
    return merchant


def _some(apps: tuple[EntityId, ...]) -> tuple[EntityId, ...]:
    if not apps:
        raise wire.field_refusal(FieldError("", "is empty: somebody must have access"))
    return apps


Key = Annotated[str, _like(is_key, "is no key: 1 to 256 printable characters without blanks")]
Bin = Annotated[str, _like(re.compile(r"[0-9]{6}").fullmatch, "is not six digits")]
Last4 = Annotated[str, _like(re.compile(r"[0-9]{4}").fullmatch, "is not four digits")]
Scheme = Annotated[str, _like(SCHEMES.__contains__, f"is not one of {', '.join(SCHEMES)}")]
Month = Annotated[
    str,
    _like(re.compile(r"20[0-9]{2}-(0[1-9]|1[0-2])").fullmatch, "is not a month such as 2066-08"),
]
Tds = Annotated[str, _like(("attempt", "full").__contains__, "is neither attempt nor full")]
ErrorCode = Annotated[ProcessingError | None, wire.checked(_error), wire.schema("integer")]
Version = Annotated[int, wire.checked(_version), wire.schema("integer")]


class ImportedApp(RequestBody):
    id: wire.Id
    key: Key
    name: wire.Name = ""


class ImportedMove(RequestBody):
    """An entry of a trail: one of capture, refund and void, the others 0. A void has no line."""

    capture: wire.Amount = 0
    refund: wire.Amount = 0
    void: wire.Amount = 0
    line: wire.OptionalId = None
    descriptor: wire.Descriptor = ""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if len([amount for amount in (self.capture, self.refund, self.void) if amount]) != 1:
            raise wire.field_refusal(FieldError("", "is not one of capture, refund and void"))
        if (self.line is None) is not bool(self.void):
            why = "has no line" if self.void else "needs the id of its line"
            raise wire.field_refusal(FieldError("", why))
        return self


class KeptCard(RequestBody):
    """The part of a card that is kept."""

    bin: Bin
    last4: Last4
    scheme: Scheme
    expiry: Month
    code: wire.Flag = False

    def summary(self) -> CardSummary:
        year, month = map(int, self.expiry.split("-"))
        return CardSummary(
            bin=self.bin,
            last4=self.last4,
            expiry_ms=end_of_month_ms(year, month),
            scheme=CardBrand(self.scheme),
            has_code=self.code,
        )


class ImportedTransaction(RequestBody):
    id: wire.Id
    currency: wire.KnownCurrency
    amount: wire.Amount
    card: KeptCard
    descriptor: wire.Descriptor = ""
    custom: wire.CustomText = ""
    tds: Tds = ""
    source: wire.OptionalId = None
    error: ErrorCode = None
    trail: tuple[ImportedMove, ...] = ()


class ImportedCard(RequestBody):
    id: wire.Id
    transaction: wire.Id
    notes: wire.Text = ""


class ImportedPayout(RequestBody):
    line: wire.Id
    amount: wire.Amount
    description: wire.Text = ""


class ImportedMerchant(MerchantCreate):
    id: Annotated[wire.Id, AfterValidator(_not_numbered)]
    key: Key
    test: wire.Flag = True
    apps: Annotated[tuple[wire.Id, ...], AfterValidator(_some)]
    transactions: tuple[ImportedTransaction, ...] = ()
    cards: tuple[ImportedCard, ...] = ()
    payouts: tuple[ImportedPayout, ...] = ()


class ImportedData(RequestBody):
    """The content of a file. No new id is there twice."""

    version: Version
    apps: tuple[ImportedApp, ...] = ()
    merchants: tuple[ImportedMerchant, ...] = ()

    @model_validator(mode="after")
    def _is_something(self) -> Self:
        if not self.apps and not self.merchants:
            raise wire.field_refusal(FieldError("", "holds neither apps nor merchants"))
        return self


def read_import(root: DataNode, reference: ReferenceData) -> ImportedData:
    """The content of a file. Raises DataFileError."""
    body = Body(_Reader().fields(root, ImportedData))
    try:
        return read_model(
            ImportedData, body, wire.Reading(reference, TargetPolicy(), is_form=False)
        )
    except BadRequest as refused:
        first = refused.errors[0]
        _node_at(root, first.field).refuse(first.message)


class _Reader:
    """Reads one file into the fields of bodies; remembers the new ids that it has seen."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def fields(self, node: DataNode, model: type[RequestBody]) -> dict[str, object]:
        known = {name: each for name, each in model.model_fields.items() if name != NOT_IN_FILES}
        required = tuple(name for name, each in known.items() if each.is_required())
        optional = tuple(name for name in known if name not in required)
        return {
            name: self._field(name, each, known[name])
            for name, each in node.fields(required, optional).nodes.items()
            if not each.is_null
        }

    def _field(self, name: str, node: DataNode, field: FieldInfo) -> object:
        if name in NEW_IDS:
            self._note_new(node)
        if get_origin(field.annotation) is tuple:
            item = get_args(field.annotation)[0]
            return [self._value(each, item) for each in node.items()]
        shown = (each.json_schema for each in field.metadata if isinstance(each, WithJsonSchema))
        if any(each and each.get("type") in ("integer", "boolean", "object") for each in shown):
            return node.value()
        return self._value(node, field.annotation)

    def _value(self, node: DataNode, kind: object) -> object:
        """A text is taken as it is written, so that the country NO is no boolean."""
        if isinstance(kind, type) and issubclass(kind, RequestBody):
            return self.fields(node, kind)
        return node.text()

    def _note_new(self, node: DataNode) -> None:
        text = node.text()
        if text in self._seen:
            node.refuse(f"{text} is there twice")
        if len(self._seen) >= ENTITIES_MAX:
            node.refuse(f"is one too many: a file holds at most {ENTITIES_MAX} entities")
        self._seen.add(text)


def _node_at(root: DataNode, place: str) -> DataNode:
    """The node that the dotted path of a refusal leads to."""
    node = root
    for step in filter(None, place.split(".")):
        node = dict(node.pairs())[step] if node.is_map else node.items()[int(step)]
    return node
