"""Calls to receivers, over real sockets: what reaches whom, and what is refused."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trustme
from aiohttp import web

from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.payments.webhooks.calls import WebhookSender, WebhookTargets

LAX = TargetPolicy(allows_http=True, allows_private=True)
PUBLIC_ALONE = TargetPolicy(allows_http=True)
HEADERS = {"Tollgate-Signature": "t=1,v1=x", "Content-Type": "application/json"}
BODY = b'{"id":"1"}'
PATIENT_S = 30.0
HASTY_S = 0.2
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Receiver:
    """A server on loopback. `calls`: path, body and headers of each. `peers`: where each came
    from, so that two calls have the same if one connection served both."""

    port: int = 0
    peers: list[object] = field(default_factory=list)
    calls: list[tuple[str, bytes, dict[str, str]]] = field(default_factory=list)

    def url(self, path: str = "/hook", scheme: str = "http", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


async def ok(request: web.Request) -> web.StreamResponse:
    return web.Response(text="thanks")


@asynccontextmanager
async def receiver(
    answer: Answer = ok, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    found = Receiver()

    async def take(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        found.peers.append(request.transport.get_extra_info("peername"))
        found.calls.append((request.path_qs, await request.read(), dict(request.headers)))
        return await answer(request)

    runner = web.ServerRunner(web.Server(take), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    found.port = runner.addresses[0][1]
    try:
        yield found
    finally:
        await runner.cleanup()


@asynccontextmanager
async def sending(
    policy: TargetPolicy = LAX, timeout_s: float = PATIENT_S, tls: ssl.SSLContext | None = None
) -> AsyncIterator[WebhookSender]:
    sender = WebhookSender(WebhookTargets(TargetPolicy(), policy), timeout_s, tls)
    try:
        yield sender
    finally:
        await sender.close()


async def send(sender: WebhookSender, url: str, *, is_test: bool = True) -> str | None:
    """Why the receiver does not have it; None: it has."""
    return (await sender.send(url, BODY, HEADERS, is_test=is_test)).error


def answering(response: Callable[[], web.Response]) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return response()

    return answer


def test_a_call_carries_body_and_headers() -> None:
    async def scenario() -> None:
        async with receiver() as there, sending() as sender:
            assert await send(sender, there.url("/hook?a=b")) is None
            ((path, body, headers),) = there.calls
            assert (path, body) == ("/hook?a=b", BODY)
            assert HEADERS.items() <= headers.items()
            assert headers["Host"] == f"127.0.0.1:{there.port}"

    asyncio.run(scenario())


def test_calls_that_follow_each_other_share_a_connection() -> None:
    async def scenario() -> None:
        async with receiver() as there, sending() as sender:
            for _ in range(3):
                assert await send(sender, there.url()) is None
            assert len(there.peers) == 3
            assert len(set(there.peers)) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("status", [200, 201, 204])
def test_a_2xx_is_a_delivery(status: int) -> None:
    async def scenario() -> None:
        answer = answering(lambda: web.Response(status=status))
        async with receiver(answer) as there, sending() as sender:
            assert await send(sender, there.url()) is None

    asyncio.run(scenario())


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 404, 410, 429, 500, 503])
def test_any_other_status_is_none_and_no_redirect_is_followed(status: int) -> None:
    async def scenario() -> None:
        async with receiver() as elsewhere:
            location = {"Location": elsewhere.url("/metadata")}
            answer = answering(lambda: web.Response(status=status, headers=location))
            async with receiver(answer) as there, sending() as sender:
                reason = await send(sender, there.url())
                assert reason == f"HTTP status {status}"
                told = await sender.send(there.url(), BODY, HEADERS, is_test=True)
                assert told.status == status
                assert len(there.calls) == 2
            assert elsewhere.calls == []

    asyncio.run(scenario())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_private_address_is_not_connected_to(host: str) -> None:
    async def scenario() -> None:
        async with receiver() as there, sending(PUBLIC_ALONE) as sender:
            reason = await send(sender, there.url(host=host))
            assert reason is not None
            assert "private address" in reason
            assert "\n" not in reason
            assert there.calls == []

    asyncio.run(scenario())


def test_without_leave_a_call_needs_https() -> None:
    async def scenario() -> None:
        async with receiver() as there, sending(TargetPolicy(allows_private=True)) as sender:
            assert await send(sender, there.url()) == ("the address must be an https address")
            assert there.calls == []

    asyncio.run(scenario())


def test_another_spelling_of_a_private_address_is_no_way_around() -> None:
    async def scenario() -> None:
        async with receiver() as there, sending(PUBLIC_ALONE) as sender:
            for host in ("2130706433", "127.1", "0x7f000001", "[::ffff:127.0.0.1]", "017700000001"):
                reason = await send(sender, there.url(host=host))
                assert reason, f"{host} was called"
            assert there.calls == []

    asyncio.run(scenario())


OURS = TargetPolicy(allows_loopback=True)
NAMES_OF_OURS = ("localhost", "127.0.0.1", "[::ffff:127.0.0.1]")


def test_where_the_loopback_is_allowed_its_names_and_numbers_are_one() -> None:
    async def scenario() -> None:
        async with receiver() as there, sending(OURS) as sender:
            for host in NAMES_OF_OURS:
                assert await send(sender, there.url(host=host)) is None, host
            assert len(there.calls) == len(NAMES_OF_OURS)

    asyncio.run(scenario())


def test_live_merchants_never_call_the_loopback() -> None:
    async def scenario() -> None:
        async with receiver() as there, sending(OURS) as sender:
            for host in NAMES_OF_OURS:
                for scheme in ("http", "https"):
                    url = there.url(host=host, scheme=scheme)
                    assert await send(sender, url, is_test=False), url
            assert there.calls == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "host",
    ["10.0.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "[fd00::1]", "[fe80::1]", "intranet"],
)
def test_the_loopback_is_no_leave_for_a_private_network(host: str) -> None:
    async def scenario() -> None:
        async with sending(OURS) as sender:
            reason = await send(sender, f"https://{host}/")
            assert reason == "the address must not be a private address"

    asyncio.run(scenario())


def leading(monkeypatch: pytest.MonkeyPatch, names: dict[str, str]) -> None:
    """The DNS of somebody else: these names lead where they say."""
    lookup = asyncio.base_events.BaseEventLoop.getaddrinfo

    async def looked_up(loop: Any, host: str, *rest: Any, **more: Any) -> Any:
        return await lookup(loop, names.get(host, host), *rest, **more)

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", looked_up)


def test_a_public_name_that_leads_to_the_loopback_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However the name is bound today, and whatever connections to the loopback are open."""
    names = {"rebound.example": "127.0.0.1", "mapped.example": "::ffff:127.0.0.1"}
    leading(monkeypatch, names)
    policy = TargetPolicy(allows_http=True, allows_loopback=True)

    async def scenario() -> None:
        async with receiver() as there, sending(policy) as sender:
            assert await send(sender, there.url(host="localhost")) is None
            for name in names:
                reason = await send(sender, there.url(host=name))
                assert reason is not None
                assert "private address" in reason
            assert len(there.calls) == 1

    asyncio.run(scenario())


def test_a_loopback_that_leads_elsewhere_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    leading(monkeypatch, {"shop.localhost": "10.0.0.1"})

    async def scenario() -> None:
        async with sending(OURS) as sender:
            reason = await send(sender, "http://shop.localhost:9000/")
            assert reason is not None
            assert "leads elsewhere" in reason

    asyncio.run(scenario())


def test_over_https_the_certificate_must_be_good() -> None:
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def scenario() -> None:
        async with receiver(tls=server) as there:
            url = there.url(scheme="https", host="localhost")
            async with sending(tls=trusting) as sender:
                assert await send(sender, url) is None
                wrong_name = there.url(scheme="https", host="127.0.0.1")
                assert await send(sender, wrong_name)
            async with sending() as sender:
                reason = await send(sender, url)
                assert reason is not None
                assert "certificate verify failed" in reason
            assert len(there.calls) == 1

    asyncio.run(scenario())


def test_a_receiver_that_does_not_answer_is_left() -> None:
    async def scenario() -> None:
        left = asyncio.Event()

        async def hang(request: web.Request) -> web.StreamResponse:
            await left.wait()
            return web.Response()

        async with receiver(hang) as there, sending(timeout_s=HASTY_S) as sender:
            assert await send(sender, there.url()) == "no answer within 0.2 s"
            left.set()

    asyncio.run(scenario())


def test_an_answer_without_an_end_is_not_read() -> None:
    async def scenario() -> None:
        async def flood(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b"x" * 65_536)

        async with receiver(flood) as there, sending() as sender:
            assert await send(sender, there.url()) is None

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "bytes_back",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"\x00\xff" * 100,
    ],
)
def test_whatever_comes_back_is_a_reason_at_most(bytes_back: bytes) -> None:
    async def scenario() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(BODY)
            writer.write(bytes_back)
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, sending() as sender:
            reason = await send(sender, f"http://127.0.0.1:{port}/")
            assert reason
            assert "\n" not in reason

    asyncio.run(scenario())


def test_nobody_there_is_a_reason() -> None:
    async def scenario() -> None:
        async with receiver() as there:
            url = there.url()
        async with sending() as sender:
            reason = await send(sender, url)
            assert reason is not None
            assert "Cannot connect" in reason
            unknown = await send(sender, "http://no-such-host.invalid/")
            assert unknown

    asyncio.run(scenario())


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    async def scenario() -> None:
        async with receiver() as there, sending() as sender:
            assert await send(sender, there.url()) is None

    asyncio.run(scenario())
