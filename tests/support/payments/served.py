"""The payments API and its page on a port of the loopback, in a thread of this process."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.payments.api import App, PaymentsApi
from tollgate.actors.ledger.storage.migration import upgrade
from tollgate.serve.net.listener import listen
from tollgate.serve.node.ports import free_port


@dataclass(frozen=True, slots=True)
class ServedPayments:
    """`api` belongs to `loop`, which is the thread's."""

    address: str
    api: PaymentsApi
    shop: App
    merchant: dict[str, Any]
    loop: asyncio.AbstractEventLoop

    def link(self, **query: str) -> str:
        """A payment link of the merchant."""
        fields = {"key": str(self.merchant["key"]), "test": "1", **query}
        pairs = "&".join(f"{name}={value}" for name, value in fields.items() if value)
        return f"{self.address}/pay/?{pairs}"

    def transactions(self) -> list[dict[str, Any]]:
        """The merchant's transactions, the newest first."""
        path = f"/merchants/{self.merchant['id']}/transactions?limit=100"
        call = self.api.request("GET", path, self.shop)
        found = asyncio.run_coroutine_threadsafe(call, self.loop).result(30)
        return found.json()


@contextmanager
def served_payments(url: str) -> Iterator[ServedPayments]:
    """The API on these books, which it makes, with a test merchant."""
    started, ended = threading.Event(), []
    found: list[ServedPayments] = []

    def work() -> None:
        asyncio.run(upgrade(url))
        api = PaymentsApi(url, prefix="")
        shop = api.new_app("Coffee & Cake")
        merchant = api.new_merchant(shop, name="Coffee & Cake", currency="EUR")

        async def serve() -> None:
            stop = asyncio.Event()
            loop = asyncio.get_running_loop()
            port = free_port()
            listener = await listen(api.app, "127.0.0.1", port, what="the page")
            address = f"http://127.0.0.1:{port}"
            found.append(ServedPayments(address, api, shop, merchant, loop))
            ended.append(lambda: loop.call_soon_threadsafe(stop.set))
            started.set()
            await stop.wait()
            await listener.stop()

        try:
            api.runner.run(serve())
            api.close()
        finally:
            started.set()

    thread = threading.Thread(target=work, name="served payments")
    thread.start()
    started.wait()
    assert found, "the API did not start"
    try:
        yield found[0]
    finally:
        ended[0]()
        thread.join()
