"""A customer's browser, as a client of the payments API sees to it: tokens, steps, hints."""

from collections.abc import Mapping
from html import unescape
from json import loads
from re import search
from typing import Any, Protocol

import httpx

VERSION = {"Accept-Version": "1"}


class Clock(Protocol):
    """The time, as far as a browser can wait for it."""

    def advance(self, seconds: float) -> None: ...


class Caller(Protocol):
    """The calls of a browser: to an API in process, or over HTTP."""

    @property
    def clock(self) -> Clock: ...

    def call(self, method: str, path: str, **options: Any) -> Any: ...


class CheckoutClient:
    """`hints`: all that were given so far; `seen`: (hints before, step, type) of each step."""

    def __init__(
        self, api: Caller, merchant: Mapping[str, Any], code: str = "123", **changes: Any
    ) -> None:
        self.api = api
        self.hints: list[str] = []
        self.seen: list[tuple[int, str, str]] = []
        self.body: dict[str, Any] = {
            "test": {},
            "integration": {"key": merchant["key"]},
            "amount": {"currency": "EUR", "exponent": 2, "value": 1_000},
            "card": {
                "number": self.token("pcn", "4100000000000000"),
                "expiry": {"month": 8, "year": 2066},
                "code": self.token("pcsc", code),
            },
        } | changes

    def token(self, part: str, value: str) -> str:
        response = self.api.call(
            "POST", "/vault", json={"type": part, "value": value}, headers=VERSION
        )
        assert response.status_code == 201, response.text
        return str(response.json()["token"])

    def post(self, path: str = "/payments", **changes: Any) -> httpx.Response:
        body = self.body | {"hints": self.hints} | changes
        response: httpx.Response = self.api.call("POST", path, json=body, headers=VERSION)
        assert response.text.endswith("\n"), response.text
        return response

    def pay(self, answer: str = "confirmed", wanted: str = "") -> httpx.Response:
        """Takes every step, by the best way or by the one `wanted` of those there are; the last
        response: the transaction's, or the first refusal."""
        while (response := self.step(answer, wanted)) is not None:
            if not response.is_success or "authorizationId" in response.json():
                return response
        raise AssertionError("a step ends in a response")

    def step(self, answer: str = "confirmed", wanted: str = "") -> httpx.Response:
        """Asks for the next step and takes it; the response that ends it."""
        response = self.post()
        if not response.is_success or "challenges" not in response.json():
            return response
        ways = response.json()["challenges"]
        way = next((each for each in ways if each["type"] == wanted), ways[0])
        self.seen.append((len(self.hints), way["name"], way["type"]))
        taken = self.post(way["path"])
        if taken.is_success:
            self.hints += self.hints_of(taken.json(), answer)
        return taken

    def hints_of(self, taken: Mapping[str, Any], answer: str) -> list[str]:
        """The hints of a step, for which a page may have to be looked at."""
        if "url" in taken:
            state = taken["url"].partition("?state=")[2]
            page = self.frame("bank", {"state": httpx.QueryParams(f"state={state}")["state"]})
            assert "Confirm the payment" in page.text
            self.answer(page, answer)
        if "notBefore" in taken:
            self.api.clock.advance(3)
        if "action" not in taken:
            return list(taken["hints"])
        page = self.frame(taken["action"].rpartition("/")[2], taken["fields"])
        if "Confirm the payment" in page.text:
            page = self.answer(page, answer)
        return hints_in(page)

    def frame(self, name: str, fields: Mapping[str, str]) -> httpx.Response:
        """A page, as a form in a frame opens it."""
        page: httpx.Response = self.api.call("POST", f"/payments/frames/{name}", data=fields)
        assert page.status_code == 200, page.text
        assert "script-src 'self'" in page.headers["content-security-policy"]
        return page

    def answer(self, page: httpx.Response, answer: str) -> httpx.Response:
        """What the bank's page sends when a button is pressed."""
        state = search(r'name="state" value="([^"]+)"', page.text)
        assert state, page.text
        return self.frame("bank", {"state": unescape(state[1]), "answer": answer})


def hints_in(page: httpx.Response) -> list[str]:
    """The hints that a page hands to whoever opened it; none without."""
    found = search(r'data-hints="([^"]+)"', page.text)
    return list(loads(unescape(found[1]))) if found else []
