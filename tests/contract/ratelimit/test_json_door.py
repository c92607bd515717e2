"""The HTTP door as its callers see it (B16): statuses, bodies, headers."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import httpx
import pytest
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.json_port import json_port
from tollgate.actors.ratelimit.counting.counters import LocalCounters
from tollgate.actors.ratelimit.decision.decider import Decider
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.rules.descriptors import RequestBounds
from tollgate.actors.ratelimit.rules.rule_file import RuleFile
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.codec.answers import current_limit_bytes, response_bytes
from tollgate.serve.ratelimit.fronts.front import DecideBatch, ErrorStatus, StatusCode, WireReply
from tollgate.serve.ratelimit.health import Component, Health
from tollgate.serve.ratelimit.json_door.endpoint import JsonEndpoint
from tollgate.serve.ratelimit.json_door.exchange import JsonExchange
from tollgate.serve.ratelimit.replies import decoded_request, encoded_decision, wire_answers

RULES = """
domain: d
descriptors:
  - {key: few, rate_limit: {unit: minute, requests_per_unit: 1, name: scarce}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: plain, rate_limit: {unit: day, requests_per_unit: 10}}
"""
BODY_BYTES_MAX = 4_096
BOUNDS = RequestBounds(request_bytes_max=BODY_BYTES_MAX)
Ask = Callable[..., httpx.Response]
Opened = Callable[..., Ask]


def deciding(*, is_precise: bool = False) -> DecideBatch:
    decider = Decider(
        policy=Policy(),
        store=LocalCounters(2),
        tallies=Tallies("test"),
        clock=ManualClock(1234),
        decode=decoded_request,
        render_limit=current_limit_bytes,
        encode=encoded_decision,
    )
    decider.use_rules(load_rules([RuleFile("d.yaml", RULES)], merge_domains=False))
    return wire_answers(decider, is_precise=is_precise)


def unreachable(payloads: Sequence[bytes]) -> list[WireReply]:
    return [ErrorStatus(StatusCode.UNAVAILABLE, "counter partition 0 is not answering")] * len(
        payloads
    )


def by_serve(decide_batch: DecideBatch, exchange: JsonExchange) -> Ask:
    """A way to ask the door behind Serve: as HTTP and without a socket."""

    async def decide(payload: bytes) -> WireReply:
        return decide_batch([payload])[0]

    door = JsonEndpoint(decide, exchange)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        response = await door.answer(Request(scope, receive))
        await response(scope, receive, send)

    def ask(method: str, path: str, **request: object) -> httpx.Response:
        async def exchange() -> httpx.Response:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://door") as client:
                return await client.request(method, path, **request)

        return asyncio.run(exchange())

    return ask


@pytest.fixture(params=["by Serve", "its own port"])
def opened(request: pytest.FixtureRequest) -> Iterator[Opened]:
    """Opens a door that is asked in either way: what it answers is the same."""
    with ExitStack() as to_close:

        def open_door(
            decide_batch: DecideBatch | None = None,
            health: Health | None = None,
            *,
            is_precise: bool = False,
            elsewhere: tuple[str, ...] = (),
        ) -> Ask:
            decide_batch = decide_batch or deciding(is_precise=is_precise)
            health = health or Health()
            exchange = JsonExchange(
                health, is_precise=is_precise, bounds=BOUNDS, elsewhere=elsewhere
            )
            if request.param == "by Serve":
                return by_serve(decide_batch, exchange)
            door = to_close.enter_context(json_port(decide_batch, exchange, health))
            client = httpx.Client(base_url=f"http://{door.address}", trust_env=False)
            return to_close.enter_context(client).request

        yield open_door


def question(*descriptors: dict[str, object], **fields: object) -> dict[str, object]:
    return {"domain": "d", "descriptors": list(descriptors), **fields}


def entry(key: str, value: str = "x", **fields: object) -> dict[str, object]:
    return {"entries": [{"key": key, "value": value}], **fields}


def test_within_and_over_the_limit(opened: Opened) -> None:
    ask = opened()
    first, second = (ask("POST", "/json", json=question(entry("few"))) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 429)
    assert first.headers["content-type"] == "application/json"
    limit = {"name": "scarce", "requestsPerUnit": 1, "unit": "MINUTE"}
    # Zero values are left out, so nothing says that nothing remains.
    status = {"currentLimit": limit, "durationUntilReset": "26s"}
    assert first.json() == {"overallCode": "OK", "statuses": [{"code": "OK", **status}]}
    assert second.json() == {
        "overallCode": "OVER_LIMIT",
        "statuses": [{"code": "OVER_LIMIT", **status}],
    }


def test_no_limit_and_unlimited(opened: Opened) -> None:
    answer = opened()("POST", "/json", json=question(entry("unknown"), entry("free")))
    assert answer.json()["statuses"] == [
        {"code": "OK"},
        {"code": "OK", "limitRemaining": 4294967295},
    ]


def test_the_other_spellings_of_proto3_json(opened: Opened) -> None:
    ask = opened()
    body = {
        "domain": "d",
        "hits_addend": 2,
        "descriptors": [
            entry("plain", hitsAddend="3"),
            entry("plain", hits_addend=1, limit={"requests_per_unit": 5, "unit": 4}),
        ],
    }
    statuses = ask("POST", "/json", json=body).json()["statuses"]
    assert statuses[0]["limitRemaining"] == 7
    assert statuses[1]["currentLimit"] == {"requestsPerUnit": 5, "unit": "DAY"}
    assert statuses[1]["limitRemaining"] == 1


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_any_method_and_content_type(opened: Opened, method: str) -> None:
    body = json.dumps(question(entry("plain"))).encode()
    answer = opened()(method, "/json", content=body, headers={"content-type": "text/html"})
    assert answer.status_code == 200


BAD_BODIES = [
    b"",
    b"}",
    b"[]",
    b"null",
    b'{"domain": 1}',
    b'{"domain": "d", "surprise": 1}',
    b'{"domain": "d", "descriptors": []}',
    b'{"domain": "", "descriptors": [{}]}',
    b'{"domain": "' + b"x" * BODY_BYTES_MAX + b'"}',
]


@pytest.mark.parametrize("body", BAD_BODIES)
def test_whatever_fails_is_a_bad_request(opened: Opened, body: bytes) -> None:
    answer = opened()("POST", "/json", content=body)
    assert (answer.status_code, answer.content) == (400, b"Bad Request\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("body", BAD_BODIES)
def test_precise_errors_say_what_is_wrong(opened: Opened, body: bytes) -> None:
    answer = opened(is_precise=True)("POST", "/json", content=body)
    assert answer.status_code == 400
    assert answer.json()["code"] == "INVALID_ARGUMENT"
    assert answer.json()["message"]


@pytest.mark.parametrize(("is_precise", "status"), [(False, 400), (True, 503)])
def test_counters_out_of_reach(opened: Opened, is_precise: bool, status: int) -> None:
    ask = opened(unreachable, is_precise=is_precise)
    assert ask("POST", "/json", json=question(entry("few"))).status_code == status


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/payments", 503),
        ("/payments/merchants", 503),
        ("/paymentsx", 404),
        ("/pay", 404),
        ("/", 404),
    ],
)
def test_what_belongs_to_a_service_that_is_starting_is_not_absent(
    opened: Opened, path: str, status: int
) -> None:
    ask = opened(elsewhere=("/payments/",))
    answer = ask("POST", path)
    assert (answer.status_code, "retry-after" in answer.headers) == (status, status == 503)


def test_health_follows_its_components(opened: Opened) -> None:
    health = Health(needs_config=True)
    ask = opened(health=health)
    assert (ask("GET", "/healthcheck").status_code, ask("GET", "/healthcheck").content) == (
        500,
        b"",
    )
    health.set(Component.CONFIG, is_healthy=True)
    assert (ask("HEAD", "/healthcheck").status_code, ask("GET", "/healthcheck").text) == (200, "OK")
    health.set(Component.BACKEND, is_healthy=False)
    assert ask("GET", "/healthcheck").status_code == 500
    health.set(Component.BACKEND, is_healthy=True)
    assert ask("POST", "/healthcheck").status_code == 200
    health.set(Component.SIGTERM, is_healthy=False)
    assert ask("GET", "/healthcheck").status_code == 500


def test_unknown_paths_are_404(opened: Opened) -> None:
    for path in ("/", "/jsonx", "/json/", "/healthcheck/x"):
        answer = opened()("GET", path)
        assert (answer.status_code, answer.text) == (404, "404 page not found\n")


def test_an_empty_response() -> None:
    answer = JsonExchange(Health(), is_precise=False).decided(response_bytes(0, []))
    assert (answer.status, answer.body) == (500, b"{}")
