"""Where calls come from, through Serve's HAProxy: its peer's address, whatever the caller says."""

import httpx

from tests.e2e.payments.tills import MERCHANT
from tests.support.processes.tollgate import TollgateProcess

# Also the loopback, but not what HAProxy itself calls replicas from.
CALLER = "127.0.0.2"
FORGED = {
    "X-Forwarded-For": "198.51.100.1",
    "X-Tollgate-Peer": "198.51.100.2",
    "X-Real-IP": "198.51.100.3",
    "Forwarded": "for=198.51.100.4",
}


def test_the_audit_has_the_address_of_the_peer_and_no_forged_one(tollgate: TollgateProcess) -> None:
    url = tollgate.url("PORT", "/payments")
    transport = httpx.HTTPTransport(local_address=CALLER)
    with httpx.Client(base_url=url, transport=transport, headers=FORGED, timeout=20) as client:
        key = client.post("/apps").raise_for_status().json()["app"]["key"]
        client.auth = httpx.BasicAuth("", key)
        merchant = client.post("/merchants", json=MERCHANT).raise_for_status().json()["merchant"]
        path = f"/merchants/{merchant['id']}"
        client.put(path, json={"name": "New"}).raise_for_status()
        audit = client.get(f"{path}/audit", params={"limit": 10}).raise_for_status().json()
    assert [entry["address"] for entry in audit] == [CALLER] * 2
