"""The demo: what a shop does with the payments API, call by call, over HTTP."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

Say = Callable[[str], None]
TIMEOUT_S = 15.0
CARD = {"number": "4100 0000 0000 0000", "expiry": {"month": 8, "year": 2066}, "code": "123"}
MERCHANT = {
    "name": "Coffee & Cake",
    "currency": "DKK",
    "test": True,
    "email": "shop@example.com",
    "website": "https://example.com",
    "descriptor": "Coffee & Cake",
    "company": {"country": "DK"},
}
FORM_LINE_MAX = 100


class DemoFailed(Exception):  # noqa: N818 - what happened
    """A call did not work: `str(error)` is one line."""


@dataclass(slots=True)
class Demo:
    """`url`: where the API is, without a slash at the end. `key`: the app's, once there is one."""

    url: str
    say: Say
    key: str = ""

    def run(self) -> None:
        """All of it. Raises DemoFailed."""
        with httpx.Client(timeout=TIMEOUT_S) as client:
            self._story(client)

    def _story(self, client: httpx.Client) -> None:
        self.say("An app is a machine's identity. Its key is shown this once.")
        app = self._post(client, "/apps", {"name": "Demo"})["app"]
        self.key = app["key"]
        self.say("A merchant holds the money; this one is for tests, and funded in DKK.")
        merchant = self._post(client, "/merchants", MERCHANT)["merchant"]
        self.say("A customer pays 10.00 EUR by card, with the merchant's public key.")
        payment = {"key": merchant["key"], "currency": "EUR", "amount": 1_000, "card": CARD}
        transaction = self._post(client, "/sandbox/payments", payment)["transaction"]
        path = f"/transactions/{transaction['id']}"
        self.say("The goods go out: 8.00 EUR are captured, and exchanged into DKK.")
        self._post(client, f"{path}/captures", {"amount": 800, "currency": "EUR"})
        self.say("Something comes back: 3.00 EUR are refunded.")
        self._post(client, f"{path}/refunds", {"amount": 300})
        self.say("What has moved the merchant's balance, the newest first:")
        self._call(client, "GET", f"/merchants/{merchant['id']}/lines?limit=10")
        self.say(f"Go on with: curl -u :{self.key} {self.url}{path}")

    def _post(self, client: httpx.Client, path: str, body: dict[str, Any]) -> Any:
        return self._call(client, "POST", path, body)

    def _call(
        self, client: httpx.Client, method: str, path: str, body: dict[str, Any] | None = None
    ) -> Any:
        self.say(f"\n> {method} {path}")
        if body is not None:
            self.say(_shown(body, "> "))
        headers = {"Accept": "application/json"}
        auth = httpx.BasicAuth("", self.key) if self.key else None
        try:
            response = client.request(
                method, f"{self.url}{path}", json=body, headers=headers, auth=auth
            )
        except httpx.HTTPError as error:
            raise DemoFailed(f"{method} {self.url}{path}: {_in_one_line(error)}") from None
        self.say(f"< {response.status_code} {response.reason_phrase}")
        try:
            answer = response.json()
        except ValueError:
            what = "is not the payments API: its answer is no JSON"
            raise DemoFailed(f"{method} {self.url}{path}: {what}") from None
        self.say(f"{_shown(answer, '< ')}\n")
        if not response.is_success:
            raise DemoFailed(f"{method} {self.url}{path}: answered {response.status_code}")
        return answer


def _shown(value: Any, mark: str) -> str:
    """On one line if it fits."""
    short = json.dumps(value, ensure_ascii=False)
    text = short if len(short) <= FORM_LINE_MAX else json.dumps(value, indent=2, ensure_ascii=False)
    return "\n".join(f"{mark}{line}" for line in text.splitlines())


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
