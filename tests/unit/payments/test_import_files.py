"""Files of test data: what they may say, and the line of what they may not."""

import pytest

from tests.support.ledger.books import DECLINED, DKK, EUR
from tollgate.actors.ledger.law.values import CardBrand, Price, Pricing
from tollgate.serve.payments.imports.files import ENTITIES_MAX, ImportedData, read_import
from tollgate.serve.payments.reference.currencies import Currencies, CurrencyEntry
from tollgate.serve.payments.reference.data_file import DataFileError, read_data_text
from tollgate.serve.payments.reference.exchange_rates import TableOfRates
from tollgate.serve.payments.reference.processing_errors import ErrorEntry, ProcessingErrors
from tollgate.serve.payments.reference.tables import ReferenceData

CURRENCIES = Currencies(1, {code: CurrencyEntry(code, 2, is_fundable=True) for code in (EUR, DKK)})
REFERENCE = ReferenceData(
    currencies=CURRENCIES,
    rates=TableOfRates(CURRENCIES, ()),
    errors=ProcessingErrors(1, {8: ErrorEntry(DECLINED, True)}),
    countries=frozenset({"DK"}),
    iban_lengths={"DK": 18},
    pricing=Pricing(0, Price(EUR, 0), Price(EUR, 0)),
)
APPS = """version: 1
apps:
  - {id: 555eca95ed59804d2cf12b11, key: 4ff7de37, name: Shop}
"""
WHOLE = f"""{APPS}merchants:
  - id: 55006bdfe0308c4cbfdbd0e1
    key: public
    currency: DKK
    email: shop@example.com
    website: example.com
    descriptor: Shop
    company: {{country: DK}}
    apps: [555eca95ed59804d2cf12b11]
    transactions:
      - id: 560fd96b7973ff3d2362a78c
        currency: EUR
        amount: 1000
        card: {{bin: "410000", last4: "0000", scheme: visa, expiry: 2066-08, code: true}}
        custom: {{a: [1, true, null, "x"]}}
        error: 8
      - id: 560fd96b7973ff3d2362a78d
        currency: DKK
        amount: 300
        card: {{bin: "510000", last4: "0012", scheme: mastercard, expiry: 2066-12}}
        source: 560fd96b7973ff3d2362a78c
        tds: attempt
        descriptor: Coffee
        trail:
          - {{capture: 200, line: 560fd97a7973ff3d2362a78d, descriptor: Once}}
          - {{refund: 120, line: 560fd97a7973ff3d2362a78e}}
          - {{void: 40}}
    cards:
      - {{id: 560fdc007973ff3d2362a793, transaction: 560fd96b7973ff3d2362a78d, notes: Mine}}
    payouts:
      - {{line: 560fdd007973ff3d2362a794, amount: 10, description: First}}
"""


def read(text: str) -> ImportedData:
    return read_import(read_data_text("shop.yaml", text.encode()), REFERENCE)


def test_a_whole_file() -> None:
    data = read(WHOLE)
    (app,), (merchant,) = data.apps, data.merchants
    assert (app.id, app.key, app.name) == ("555eca95ed59804d2cf12b11", "4ff7de37", "Shop")
    assert (merchant.currency, merchant.company.number, merchant.bank.iban) == ("DKK", "", "")
    assert merchant.test
    assert merchant.apps == (app.id,)
    failed, good = merchant.transactions
    assert failed.error == DECLINED
    assert failed.custom == '{"a":[1,true,null,"x"]}'
    card = failed.card.summary()
    assert (card.bin, card.scheme, card.has_code) == ("410000", CardBrand.VISA, True)
    assert good.error is None
    assert (good.source, good.tds, good.descriptor) == (failed.id, "attempt", "Coffee")
    assert (good.card.last4, good.card.code) == ("0012", False)
    assert [(each.capture, each.refund, each.void, bool(each.line)) for each in good.trail] == [
        (200, 0, 0, True),
        (0, 120, 0, True),
        (0, 0, 40, False),
    ]
    assert merchant.cards[0].notes == "Mine"
    assert merchant.payouts[0].amount == 10


def test_json_is_as_good() -> None:
    text = '{"version":1,"apps":[{"id":"555eca95ed59804d2cf12b11","key":"k"}]}'
    assert read(text).apps[0].key == "k"


BAD = [
    ("version: 1", "1: holds neither apps nor merchants"),
    ("version: 2\napps: []", "1: version: is not 1"),
    ("apps: []", "1: version is missing"),
    (f"{APPS}shops: []", "4: shops: is unknown"),
    (APPS.replace("key: 4ff7de37", "key: a b"), "3: apps[0].key: is no key"),
    (APPS.replace("key: 4ff7de37, ", ""), "3: apps[0]: key is missing"),
    (APPS.replace("555e", "555E"), "3: apps[0].id: must be an id: 24 digits"),
    (WHOLE.replace("62a78e", "62a78d"), "29: merchants[0].transactions[1].trail[1].line: 560fd97a"),
    (WHOLE.replace("bdfe0308c", "bdf00308c"), "5: merchants[0].id: is of those that Tollgate"),
    (WHOLE.replace("currency: DKK\n    email", "currency: XXX\n    email"), "7: merchants[0].curr"),
    (WHOLE.replace("shop@example.com", "john"), "8: merchants[0].email: must be an e-mail"),
    (WHOLE.replace("example.com\n    descr", "a b\n    descr"), "9: merchants[0].website: must"),
    (WHOLE.replace("descriptor: Shop", f"descriptor: {'x' * 23}"), "10: merchants[0].descriptor"),
    (WHOLE.replace("country: DK", "country: NO"), "11: merchants[0].company.country: must be"),
    (WHOLE.replace("apps: [555eca95ed59804d2cf12b11]", "apps: []"), "12: merchants[0].apps: is em"),
    (WHOLE.replace("amount: 1000", "amount: 0"), "16: merchants[0].transactions[0].amount: must"),
    (WHOLE.replace("amount: 1000", "amount: '9'"), "16: merchants[0].transactions[0].amount: must"),
    (WHOLE.replace('"410000"', "41000"), "17: merchants[0].transactions[0].card.bin: is not six"),
    (WHOLE.replace('"0000"', '"00000"'), "card.last4: is not four digits"),
    (WHOLE.replace("visa", "amex"), "card.scheme: is not one of visa, mastercard"),
    (WHOLE.replace("2066-08", "2066-13"), "card.expiry: is not a month"),
    (WHOLE.replace("[1, true", "[.nan, true"), "custom.a[0]: is no number of JSON"),
    (
        WHOLE.replace("{a: [1, true", "[{a: [1, true").replace('"x"]}', '"x"]}]'),
        "must be an object",
    ),
    (WHOLE.replace("error: 8", "error: 99"), "19: merchants[0].transactions[0].error: 99 is no"),
    (WHOLE.replace("attempt", "half"), "tds: is neither attempt nor full"),
    (WHOLE.replace("void: 40", "void: 40, refund: 1"), "is not one of capture, refund and void"),
    (WHOLE.replace("void: 40", "capture: 40"), "needs the id of its line"),
    (WHOLE.replace("void: 40", "void: 40, line: 560fd97a7973ff3d2362a7ff"), "has no line"),
    (WHOLE.replace("key: public", "key: public\n    test: false"), "merchants[0].test: is unknown"),
]


@pytest.mark.parametrize(("text", "line"), BAD)
def test_a_bad_file_is_refused_in_one_line(text: str, line: str) -> None:
    with pytest.raises(DataFileError) as caught:
        read(text)
    said = str(caught.value)
    assert said.startswith("shop.yaml:")
    assert line in said
    assert "\n" not in said


def test_a_bad_key_is_not_repeated() -> None:
    with pytest.raises(DataFileError) as caught:
        read(APPS.replace("key: 4ff7de37", "key: my secret"))
    assert "secret" not in str(caught.value)


def test_a_file_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ENTITIES_MAX >= 1_000
    monkeypatch.setattr("tollgate.serve.payments.imports.files.ENTITIES_MAX", 3)
    with pytest.raises(DataFileError, match="at most 3 entities"):
        read(WHOLE)
