"""Listening inside a loop that is already running."""

import asyncio
import contextlib
import signal
import socket

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tests.support.waiting import PATIENCE_S
from tollgate.serve.net.listener import listen


async def hello(_: Request) -> Response:
    return PlainTextResponse("hello")


async def refuses_calls(port: int) -> None:
    """Returns once nothing listens on a port: refused, or reset while it waited to be taken."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            return
        writer.close()


HELLO = Starlette(routes=[Route("/", hello)])


def test_a_head_without_an_end_is_refused() -> None:
    async def main() -> None:
        async with await listen(HELLO, "127.0.0.1", 0, what="debug") as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
            writer.write(b"Cookie: a=b\r\n" * 10_000)
            # (a connection that is closed before all was read of it is reset)
            with contextlib.suppress(ConnectionResetError):
                async with asyncio.timeout(PATIENCE_S):
                    assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
            writer.close()

    asyncio.run(main())


def test_a_free_port_is_found_and_freed() -> None:
    async def main() -> None:
        listener = await listen(HELLO, "127.0.0.1", 0, what="debug")
        assert (listener.host, listener.port) != ("127.0.0.1", 0)
        async with httpx.AsyncClient() as client:
            url = f"http://127.0.0.1:{listener.port}/"
            assert (await client.get(url)).text == "hello"
            await listener.stop()
            with pytest.raises(httpx.ConnectError):
                await client.get(url)
        async with await listen(HELLO, "127.0.0.1", listener.port, what="debug") as again:
            assert again.port == listener.port

    asyncio.run(main())


def test_a_call_under_way_is_answered_before_the_stop() -> None:
    async def main() -> None:
        has_begun, may_end = asyncio.Event(), asyncio.Event()

        async def slow(_: Request) -> Response:
            has_begun.set()
            await may_end.wait()
            return PlainTextResponse("done")

        app = Starlette(routes=[Route("/", slow)])
        listener = await listen(app, "127.0.0.1", 0, what="debug")
        async with httpx.AsyncClient() as client:
            call = asyncio.create_task(client.get(f"http://127.0.0.1:{listener.port}/"))
            await has_begun.wait()
            stopping = asyncio.create_task(listener.stop())
            await refuses_calls(listener.port)
            may_end.set()
            assert (await call).text == "done"
            await stopping

    asyncio.run(main())


def test_no_host_means_every_address() -> None:
    async def main() -> None:
        async with await listen(HELLO, "", 0, what="metrics") as listener:
            assert listener.host == "0.0.0.0"
            async with httpx.AsyncClient() as client:
                answer = await client.get(f"http://127.0.0.1:{listener.port}/")
                assert answer.text == "hello"

    asyncio.run(main())


def test_a_taken_port_is_said_in_one_line() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(OSError, match=r"^\[Errno 98\]") as caught:
                await listen(HELLO, "127.0.0.1", port, what="debug")
        assert caught.value.strerror == (
            f"cannot listen for debug on 127.0.0.1:{port}: Address already in use; "
            "free the address or set another"
        )

    asyncio.run(main())


def test_an_address_of_another_machine_is_said_in_one_line() -> None:
    async def main() -> None:
        # A documentation address (RFC 5737): nobody has it.
        with pytest.raises(OSError, match=r"metrics on 192\.0\.2\.1:9090: Cannot assign"):
            await listen(HELLO, "192.0.2.1", 9090, what="metrics")

    asyncio.run(main())


def test_the_signals_of_the_process_are_left_alone() -> None:
    async def main() -> None:
        before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        async with await listen(HELLO, "127.0.0.1", 0, what="debug"):
            assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before

    asyncio.run(main())
