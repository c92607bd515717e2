"""Light load on every service of a Tollgate, and what its callers hear while things break.

One caller a service makes one call after the other. A capture is asked for with one idempotency key
until it is answered, as a till does, so what was taken can be compared with what was told.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from types import MappingProxyType
from typing import Any

import grpc
import httpx

from tests.support.catalog_auth.api import item
from tests.support.processes.tollgate import TollgateProcess
from tests.support.ratelimit.service_stub import RateLimitServiceStub
from tollgate.serve.commands.payments.demo import CARD, MERCHANT
from tollgate.serve.ratelimit.codec.messages import RequestMessage

# A caller who waits so long has been left hanging.
CALL_TIMEOUT_S = 20.0
PAUSE_S = 0.03
FUND = 900_000
CAPTURES, DECISIONS, JSON_DECISIONS, VERDICTS = "captures", "decisions", "JSON", "verdicts"
SILENCE = "silence"
# What a call of a door that is closed, or of a process that ends inside it, hears at once.
DEFINITE = ("503 with Retry-After", "refused", "cut", "UNAVAILABLE", "UNKNOWN")

Ask = Callable[[httpx.Client], tuple[str, bool]]
"""Makes one call, and says what came of it and whether that was right."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A call that has ended, in seconds of the monotonic clock. `said`: the status in words."""

    begun_s: float
    ended_s: float
    said: str
    is_right: bool

    @property
    def took_s(self) -> float:
        return self.ended_s - self.begun_s

    @property
    def is_definite(self) -> bool:
        """Whether the caller knows that it has to ask again."""
        return self.is_right or self.said in DEFINITE


class ServiceLoad:
    """`calls`: what each service's caller has heard so far."""

    def __init__(self, tollgate: TollgateProcess) -> None:
        self._door = tollgate.url("PORT")
        self._api = httpx.Client(base_url=f"{self._door}/payments", timeout=CALL_TIMEOUT_S)
        self._auth = httpx.BasicAuth("", self._post("/apps", {})["app"]["key"])
        self._api.auth = self._auth
        merchant = self._post("/merchants", MERCHANT)["merchant"]
        payment = {"key": merchant["key"], "currency": "DKK", "amount": FUND, "card": CARD}
        made = self._post("/sandbox/payments", payment)["transaction"]
        self._transaction = f"/transactions/{made['id']}"
        # As proxies do, and unlike grpc's own two minutes.
        again = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500)]
        self._channel = grpc.insecure_channel(tollgate.grpc_address, again)
        self._decisions = RateLimitServiceStub(self._channel)
        self._stop = Event()
        self.captured = 0
        self.calls: dict[str, list[Heard]] = {}

    @contextmanager
    def flowing(self, others: Mapping[str, Ask] = MappingProxyType({})) -> Iterator[None]:
        """Calls while the block runs, also of other callers; when it ends, every call has."""
        asks: dict[str, Ask] = {
            CAPTURES: self._capture,
            DECISIONS: self._decide,
            JSON_DECISIONS: self._decide_json,
            VERDICTS: self._validate,
            **others,
        }
        self.calls = {service: [] for service in asks}
        threads = [Thread(target=self._run, args=each) for each in asks.items()]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
            self._channel.close()

    def taken(self) -> int:
        """What the books say was captured."""
        found = self._api.get(self._transaction).raise_for_status().json()
        return int(found["transaction"]["capturedAmount"])

    def are_right_since(self, at_s: float, for_s: float) -> bool:
        """Whether each service has been answering right for so long, and has done so since then."""
        now_s = time.monotonic()
        return (
            all(
                calls
                and all(each.is_right for each in calls if each.ended_s > now_s - for_s)
                and calls[-1].begun_s >= at_s
                and calls[-1].ended_s > now_s - for_s
                for calls in ([*heard[-200:]] for heard in self.calls.values())
            )
            and now_s >= at_s + for_s
        )

    def _run(self, service: str, ask: Ask) -> None:
        with httpx.Client(base_url=self._door, timeout=CALL_TIMEOUT_S) as client:
            while not self._stop.wait(PAUSE_S):
                begun_s = time.monotonic()
                try:
                    said, is_right = ask(client)
                except httpx.TimeoutException:
                    said, is_right = SILENCE, False
                except httpx.ConnectError:
                    said, is_right = "refused", False
                except httpx.TransportError:
                    said, is_right = "cut", False
                except grpc.RpcError as error:
                    code = error.code()
                    is_silence = code is grpc.StatusCode.DEADLINE_EXCEEDED
                    said, is_right = SILENCE if is_silence else code.name, False
                self.calls[service].append(Heard(begun_s, time.monotonic(), said, is_right))

    def _capture(self, client: httpx.Client) -> tuple[str, bool]:
        answer = client.post(
            f"/payments{self._transaction}/captures",
            json={"amount": 1},
            headers={"Idempotency-Key": f"capture-{self.captured}"},
            auth=self._auth,
        )
        self.captured += answer.status_code == 201
        return status_of(answer), answer.status_code == 201

    def _decide(self, _: httpx.Client) -> tuple[str, bool]:
        question = RequestMessage(domain="edge")
        question.descriptors.add().entries.add(key="path", value="/")
        self._decisions.ShouldRateLimit(question, timeout=CALL_TIMEOUT_S)
        return "OK", True

    def _decide_json(self, client: httpx.Client) -> tuple[str, bool]:
        question = {"domain": "edge", "descriptors": [{"entries": [{"key": "path", "value": "/"}]}]}
        answer = client.post("/json", json=question)
        return status_of(answer), answer.status_code in (200, 429)

    def _validate(self, client: httpx.Client) -> tuple[str, bool]:
        answer = client.post("/catalog-auth/validate", json=item())
        return status_of(answer), answer.status_code == 200

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._api.post(path, json=body).raise_for_status().json()


def status_of(answer: httpx.Response) -> str:
    """The status, and whether a 503 says when to ask again."""
    if answer.status_code == 503:
        return "503 with Retry-After" if "retry-after" in answer.headers else "503"
    return str(answer.status_code)
