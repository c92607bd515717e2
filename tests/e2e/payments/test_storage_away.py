"""A PostgreSQL server that is stopped under a running Tollgate: callers hear 503 and when to ask
again, the operator hears what is wrong, and all of it goes on by itself when the server is back."""

import json
import time
from typing import Any

import httpx

from tests.e2e.conftest import StartTollgate
from tests.e2e.payments.tills import CARD, MERCHANT
from tests.support.processes.tollgate import TollgateProcess
from tests.support.servers.postgresql import stoppable_postgresql
from tests.support.waiting import until

# The figure is 1 s, on a quiet machine.
ANSWER_WITHIN_S = 5.0
# A shard hears of it by an order. Where a call ends earlier, at the reading of its key, none comes.
AWAY = {
    f"payments: the books cannot be {what} at this moment" for what in ("read", "read or written")
}


def told(tollgate: TollgateProcess) -> tuple[int, dict[str, Any]]:
    """What `tollgate status` says."""
    done = tollgate.command("status", "--json")
    return done.returncode, json.loads(done.stdout)


def test_storage_that_is_away_is_said_to_be_and_used_again(start_tollgate: StartTollgate) -> None:
    with stoppable_postgresql() as server:
        settings = {"TOLLGATE_STORAGE_URL": server.url, "CATALOG_ENABLED": "false"}
        with start_tollgate(settings | {"DRAIN_GRACE": "1s"}) as tollgate:
            api = httpx.Client(base_url=tollgate.url("PORT", "/payments"), timeout=20)
            key = api.post("/apps").raise_for_status().json()["app"]["key"]
            api.auth = httpx.BasicAuth("", key)
            merchant = api.post("/merchants", json=MERCHANT).raise_for_status().json()["merchant"]
            body = {"key": merchant["key"], "amount": 500, "currency": "DKK", "card": CARD}
            paid = api.post("/sandbox/payments", json=body).raise_for_status().json()
            captures = f"/transactions/{paid['transaction']['id']}/captures"

            def capture(number: int) -> httpx.Response:
                headers = {"Idempotency-Key": f"capture-{number}"}
                return api.post(captures, json={"amount": 1}, headers=headers)

            assert capture(0).status_code == 201
            assert told(tollgate)[1]["state"] == "healthy"
            server.stop()
            try:
                for number in range(1, 6):
                    begun_s = time.monotonic()
                    answer = capture(number)
                    assert time.monotonic() - begun_s < ANSWER_WITHIN_S
                    assert answer.status_code == 503, answer.text
                    assert int(answer.headers["retry-after"]) > 0
                until(lambda: told(tollgate)[0] == 1, "status says that something is wrong")
                status = told(tollgate)[1]
                assert status["state"] == "unhealthy"
                (problem,) = status["problems"]
                assert problem in AWAY
            finally:
                server.start()
            until(lambda: capture(1).status_code == 201, "captures go on")
            until(lambda: told(tollgate)[0] == 0, "status is content again")
            for number in range(2, 6):
                assert capture(number).status_code == 201
            shown = api.get(f"/transactions/{paid['transaction']['id']}").raise_for_status()
            assert shown.json()["transaction"]["capturedAmount"] == 6
