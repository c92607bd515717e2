"""The payment page as it is served: every link gets a page, in its language, under one policy."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from string import Formatter
from typing import Any

import httpx
import pytest

from tests.support.payments.api import App, PaymentsApi
from tollgate.actors.ledger.law.values import Currency
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ratelimit.rules.descriptors import Entries
from tollgate.serve.payments.api.orders import RETRY_AFTER_S
from tollgate.serve.payments.api.rejections import TooMany
from tollgate.serve.payments.checkout.page import language as languages
from tollgate.serve.payments.checkout.page.language import LANGUAGES, language_of
from tollgate.serve.payments.checkout.page.link import Fault
from tollgate.serve.payments.reference.currencies import CurrencyEntry

Merchant = dict[str, Any]
LOCALES = Path(languages.__file__).parent / "locales"


class Parsed(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def script(self) -> Any:
        """What the page's script works with."""
        found = [each["data-page"] for _, each in self.elements if "data-page" in each]
        assert found[0]
        return json.loads(found[0])


def page(api: PaymentsApi, merchant: Merchant | None, **query: str) -> httpx.Response:
    fields = {"key": merchant["key"], "test": "1"} if merchant else {}
    headers = {"accept": "text/html", "accept-language": query.pop("accepted", "en")}
    response: httpx.Response = api.call("GET", "/pay/", params={**fields, **query}, headers=headers)
    return response


def test_a_link_with_a_value_is_the_page_for_a_card(api: PaymentsApi, merchant: Merchant) -> None:
    text = '<b>Two</b> coffees & "cake"'
    response = page(api, merchant, currency="EUR", value="12.5", text=text, reference="order 7")
    assert (response.status_code, response.headers["content-type"]) == (
        200,
        "text/html; charset=utf-8",
    )
    assert "€12.50" in response.text
    assert "&lt;b&gt;Two&lt;/b&gt; coffees &amp; &#34;cake&#34;" in response.text
    assert "<b>" not in response.text
    script = Parsed(response.text).script()
    assert script["amount"] == {"currency": "EUR", "exponent": 2, "value": 1250}
    assert (script["key"], script["isTest"], script["text"]) == (merchant["key"], True, text)
    assert (script["reference"], script["api"]) == ("order 7", "/payments")
    assert response.headers["x-request-id"]


def test_nothing_inline_runs_and_nobody_frames_the_page(
    api: PaymentsApi, merchant: Merchant
) -> None:
    links = ({"value": "1"}, {}, {"value": "x"})
    for response in (page(api, merchant, **link) for link in links):
        policy = response.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "http" not in policy
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"):
            assert part in policy
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["referrer-policy"] == "no-referrer"
        for tag, attributes in Parsed(response.text).elements:
            assert tag != "style"
            assert tag != "script" or attributes["src"]
            assert not any(name == "style" or name.startswith("on") for name in attributes)


def test_the_files_of_the_page_are_there_and_no_others(
    api: PaymentsApi, merchant: Merchant
) -> None:
    wanted = {"page.css", "page.js"}
    asked = set()
    while wanted:
        asked |= wanted
        texts = {name: api.call("GET", f"/pay/{name}") for name in wanted}
        assert {name: each.status_code for name, each in texts.items()} == dict.fromkeys(
            wanted, 200
        )
        imported = (re.findall(r'from "\./(.+?)"', each.text) for each in texts.values())
        wanted = {name for names in imported for name in names} - asked
    assert asked > {"card.js", "payment.js"}
    for name in ("pay.html", "view.py", "locales/en.json", "..%2fvault.py", ""):
        found = api.call("GET", f"/pay/{name}", headers={"accept": "text/html"})
        assert found.status_code in (400, 404), name


def test_without_the_slash_one_is_led_to_it(api: PaymentsApi, merchant: Merchant) -> None:
    response = api.call("GET", "/pay", params={"key": merchant["key"], "value": "1"})
    assert response.status_code == 308
    assert response.headers["location"] == f"./pay/?key={merchant['key']}&value=1"


@pytest.mark.parametrize(
    ("locale", "amount", "tag"),
    [
        ("en", "€1,234.50", "en"),
        ("en_US", "€1,234.50", "en-US"),
        ("da", "1.234,50\u00a0€", "da"),
        ("de_CH", "EUR\u00a01’234.50", "de-CH"),
        ("fr", "1\u202f234,50\u00a0€", "fr"),
        ("es", "1.234,50\u00a0€", "es"),
    ],
)
def test_amounts_and_words_are_those_of_the_locale(
    api: PaymentsApi, merchant: Merchant, locale: str, amount: str, tag: str
) -> None:
    for asked in (locale, locale.replace("_", "-"), locale.upper()):
        response = page(api, merchant, currency="EUR", value="1234.5", locale=asked)
        assert f'<html lang="{tag}">' in response.text
        assert amount in response.text
        assert language_of(locale).text("form.number") in response.text
        assert response.headers["content-language"] == tag


@pytest.mark.parametrize(
    ("wanted", "accepted", "code"),
    [
        ("", "da, en;q=0.8", "da"),
        ("", "ja, fr;q=0.5, de;q=0.9", "de"),
        ("", "es;q=0, *", "en"),
        ("ja", "fr", "fr"),
        ("xx_YY_zz", "", "en"),
        ("de_XX", "", "de"),
        ("../../etc", "", "en"),
        ("e" * 500, ",".join(["x" * 500] * 500), "en"),
    ],
)
def test_a_language_is_always_found(wanted: str, accepted: str, code: str) -> None:
    assert language_of(wanted, accepted).code == code


@pytest.mark.parametrize(
    ("currency", "exponent", "shown"),
    [("JPY", 0, "¥1,250"), ("KWD", 3, "KWD\u00a01.250"), ("ISK", 2, "ISK\u00a012.50")],
)
def test_decimals_are_those_of_the_table_of_currencies(
    currency: str, exponent: int, shown: str
) -> None:
    assert language_of("en").amount(1250, CurrencyEntry(Currency(currency), exponent)) == shown


def names_in(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_says_everything(code: str) -> None:
    english = json.loads((LOCALES / "en.json").read_text(encoding="utf-8"))
    own = json.loads((LOCALES / f"{code}.json").read_text(encoding="utf-8"))
    assert list(own) == list(english)
    assert {name: names_in(text) for name, text in own.items()} == {
        name: names_in(text) for name, text in english.items()
    }
    assert all(text.strip() == text != "" for text in own.values())


def texts_used() -> Iterator[str]:
    for file in LOCALES.parent.iterdir():
        if file.suffix in (".html", ".js", ".py"):
            text = file.read_text(encoding="utf-8")
            yield from re.findall(r"""["']([a-z]+\.[a-z_]+)["']""", text)


def test_every_text_is_used_and_every_text_that_is_used_is_there() -> None:
    there = set(json.loads((LOCALES / "en.json").read_text(encoding="utf-8")))
    heads = {name.partition(".")[0] for name in there}
    used = {name for name in texts_used() if name.partition(".")[0] in heads}
    used = {name for name in used if not name.endswith((".html", ".js"))}
    used |= {f"fault.{fault.value}" for fault in Fault} | {
        "away.text",
        "away.too_often",
        "noscript",
    }
    used |= {name for name in there if name.startswith("typed.")}
    assert used == there


@pytest.mark.parametrize("locale", LANGUAGES)
@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"value": "1,50"}, "1,50"),
        ({"currency": "EURO", "value": "1"}, "EURO"),
        ({"currency": "HRK", "value": "1"}, "HRK"),
        ({"currency": "EUR", "value": "1.505"}, "1.505"),
        ({"value": "1", "redirect": "javascript:alert(1)"}, "javascript:alert(1)"),
        ({"value": "1", "recurring": "perhaps"}, "perhaps"),
    ],
)
def test_a_bad_link_is_told_in_its_language(
    api: PaymentsApi, merchant: Merchant, locale: str, query: dict[str, str], shown: str
) -> None:
    response = page(api, merchant, locale=locale, **query)
    assert response.status_code == 400
    assert language_of(locale).text("fault.heading") in response.text
    assert shown in response.text


def test_of_a_shop_that_cannot_be_paid_no_more_is_said_than_that(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    said = language_of("en").text
    nobodys = page(api, None, key="nobody's", value="1")
    assert (nobodys.status_code, "nobody&#39;s" in nobodys.text) == (404, True)
    assert page(api, None, key="x" * 300, value="1").status_code == 404
    assert page(api, None, value="1").status_code == 400
    mixed = page(api, merchant, value="1", test="")
    assert (mixed.status_code, said("fault.is_test") in mixed.text) == (400, True)
    live = api.new_merchant(shop, test=False, name="Real & True")
    refused = page(api, live, value="1", test="")
    assert (refused.status_code, said("fault.cannot_pay") in refused.text) == (403, True)
    mixed = page(api, live, value="1")
    assert (mixed.status_code, said("fault.is_live") in mixed.text) == (400, True)
    for each in (refused, mixed):
        assert "Real" not in each.text


def test_of_a_merchant_the_name_is_shown_or_the_descriptor(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    assert "<h1>Coffee &amp; Cake</h1>" in page(api, merchant, value="1").text
    named = api.new_merchant(shop, name="Tea")
    shown = page(api, named, value="1").text
    assert "<h1>Tea</h1>" in shown
    assert str(named["email"]) not in shown
    assert str(named["id"]) not in shown


def test_at_the_till_the_amount_is_typed_first(api: PaymentsApi, merchant: Merchant) -> None:
    link = {"locale": "da", "text": "Kaffe", "recurring": "y", "utm_source": "mail"}
    till = page(api, merchant, **link)
    assert till.status_code == 200
    fields = {
        each["name"]: each["value"]
        for tag, each in Parsed(till.text).elements
        if tag == "input" and each.get("type") == "hidden"
    }
    assert fields == {
        "key": merchant["key"],
        "test": "1",
        "text": "Kaffe",
        "locale": "da",
        "recurring": "y",
    }
    sent = {name: str(value) for name, value in fields.items()}
    typed = page(api, None, **sent, typed="1.250,5")
    assert typed.status_code == 303
    assert typed.headers["location"].startswith(f"./?key={merchant['key']}&test=1&value=1250.50&")
    card = api.call("GET", f"/pay/{typed.headers['location'].removeprefix('./')}")
    script = Parsed(card.text).script()
    assert script["amount"] == {"currency": "DKK", "exponent": 2, "value": 125050}
    # (another one of the same till)
    assert script["another"] == f"./?key={merchant['key']}&test=1&text=Kaffe&locale=da&recurring=y"


@pytest.mark.parametrize("locale", LANGUAGES)
@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("abc", "typed.malformed"),
        ("1,234567", "typed.too_fine"),
        ("0", "typed.zero"),
        ("", "typed.zero"),
        ("9" * 20, "typed.too_large"),
    ],
)
def test_an_amount_that_is_none_is_typed_again(
    api: PaymentsApi, merchant: Merchant, locale: str, typed: str, text: str
) -> None:
    response = page(api, merchant, locale=locale, typed=typed)
    assert response.status_code == 400
    problem = re.search(r'id="typed-problem" role="alert">(.+?)</p>', response.text)
    assert problem
    beginning = language_of(locale).texts[text].partition("{")[0].replace("'", "&#39;")
    assert problem[1].startswith(beginning)
    assert f'value="{typed}"' in response.text


def test_who_calls_too_often_and_who_comes_while_storage_is_away_is_told_when_to_come_back(
    api: PaymentsApi, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: Entries) -> None:
        raise TooMany("slow down", 17)

    with monkeypatch.context() as patched:
        patched.setattr(type(api.limits), "admit", lambda _, *wanted: never(*wanted))
        often = page(api, merchant, value="1", locale="fr")
    assert (often.status_code, often.headers["retry-after"]) == (429, "17")
    assert "17 secondes" in often.text

    async def gone(_: str) -> None:
        raise StorageError("the disk is away")

    monkeypatch.setattr(type(api.context.store), "merchant_by_public_key", lambda _, key: gone(key))
    away = page(api, merchant, value="1", locale="de")
    assert (away.status_code, away.headers["retry-after"]) == (503, str(RETRY_AFTER_S))
    assert language_of("de").text("away.heading") in away.text
    assert "disk" not in away.text


def test_the_page_is_not_at_the_operators_port(api: PaymentsApi) -> None:
    call = api.request("GET", "/pay/", client=api.operator_client)
    assert api.runner.run(call).status_code == 404
