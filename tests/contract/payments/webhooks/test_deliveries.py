"""From a capture to a receiver: what the API commits arrives, signed, in order, and once."""

import json
from dataclasses import replace

from aiohttp import web

from tests.support.payments.api import GOOD_CARD, App, PaymentsApi
from tests.support.payments.deliveries import deliver_due
from tollgate.actors.ledger.storage.deliveries.store import SqlDeliveryStore
from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.payments.api.asgi import Dispatcher
from tollgate.serve.payments.webhooks.caller import WebhookCaller
from tollgate.serve.payments.webhooks.calls import WebhookSender, WebhookTargets
from tollgate.serve.payments.webhooks.signature import is_signed

LAX = TargetPolicy(allows_http=True, allows_private=True)


def test_what_is_committed_arrives(
    api: PaymentsApi, shop: App, merchant: dict[str, object]
) -> None:
    api.client = api.client_of(Dispatcher(replace(api.context, targets=WebhookTargets(LAX, LAX))))
    taken: list[tuple[str, bytes]] = []

    async def take(request: web.BaseRequest) -> web.Response:
        taken.append((request.headers["Tollgate-Signature"], await request.read()))
        return web.Response()

    async def deliver_all(url: str) -> str:
        added = await api.request("POST", webhooks, shop, json={"url": url})
        paid = {"key": merchant["key"], "amount": 500, "currency": "EUR", "card": GOOD_CARD}
        made = await api.request("POST", "/sandbox/payments", json=paid)
        path = f"/transactions/{made.json()['transaction']['id']}"
        for what, amount in (("captures", 300), ("refunds", 100), ("voids", 200)):
            done = await api.request("POST", f"{path}/{what}", shop, json={"amount": amount})
            assert done.status_code == 201
        sender = WebhookSender(WebhookTargets(LAX, LAX), timeout_s=30.0)
        caller = WebhookCaller(sender, api.context.secret_sealer, api.clock)
        await deliver_due(SqlDeliveryStore(api.database), caller, api.clock)
        await sender.close()
        return str(added.json()["webhook"]["secret"])

    async def story() -> str:
        runner = web.ServerRunner(web.Server(take))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            return await deliver_all(f"http://127.0.0.1:{runner.addresses[0][1]}/hook")
        finally:
            await runner.cleanup()

    webhooks = f"/merchants/{merchant['id']}/webhooks"
    secret = api.runner.run(story())
    now_s = int(api.clock.now_s())
    assert all(is_signed(header, body, secret, now_s) for header, body in taken)
    bodies = [json.loads(body) for _, body in taken]
    assert [body["type"] for body in bodies] == [
        "webhook.added",
        "transaction.created",
        "transaction.captured",
        "transaction.refunded",
        "transaction.voided",
    ]
    listed = api.listed(f"/merchants/{merchant['id']}/events", shop)
    assert bodies == list(reversed(listed))[-5:]
