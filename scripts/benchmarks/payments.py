"""`scripts/bench payments`: what a call of the payments API costs, over HTTP and to the disk.

Every capture is of a transaction of its own, and durable before it is answered. The baseline of the
core, in the same run, is the same shard with one commit for each order. Every figure is taken on
the machine that also makes the load: compare within a run.
"""

import asyncio
import json
import shutil
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import httpx
import yaml
from rich.console import Console
from rich.table import Table

from scripts.benchmarks.http_load import Calls, Request, run_http
from scripts.benchmarks.ledger_core import core_table, size_table
from scripts.benchmarks.tollgate_node import TollgateNode, tollgate_node
from tollgate.serve.commands.payments.demo import CARD, MERCHANT

TABLES = Path("configs/payments")
AUTHORISING_CLIENTS = 64
MANY_MERCHANTS = 1_000
CAPTURES = 10_000
WIDTH = 110
PAGES = 2_000
PAYMENT = {"currency": "DKK", "amount": 1_000, "card": CARD}
CAPTURE = json.dumps({"amount": 1_000})
SERVICES = {
    "API": "ServeReplica:payments:Payments",
    "ledger": "LedgerShard",
    "HAProxy": "haproxy",
}
NO_LIMIT = {"unit": "second", "requests_per_unit": 1_000_000}


@dataclass(frozen=True, slots=True)
class Merchant:
    """A merchant of the benchmark. `key`: the public one."""

    id: str
    key: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `cpu_ms`: per call, by the title of the process."""

    what: str
    clients: int
    calls: Calls
    cpu_ms: dict[str, float]

    @property
    def rest_ms(self) -> float:
        """Of all processes that are in no column of their own."""
        return sum(self.cpu_ms.values()) - sum(self.cpu_ms[title] for title in SERVICES.values())


class Api:
    """The payments API of a running Tollgate, with an app of its own."""

    def __init__(self, node: TollgateNode) -> None:
        self.node = node
        self.url = node.url("/payments")
        self.client = httpx.Client(timeout=60)
        self.key = self._post("/apps", {"name": "Benchmark"})["app"]["key"]
        self.client.auth = httpx.BasicAuth("", self.key)

    def merchant(self) -> Merchant:
        made = self._post("/merchants", MERCHANT)["merchant"]
        return Merchant(made["id"], made["key"])

    def authorise(self, merchants: Sequence[Merchant], count: int) -> list[str]:
        """The ids of `count` new transactions, of one merchant after the other."""
        bodies = [json.dumps({"key": merchant.key, **PAYMENT}) for merchant in merchants]
        requests = [self.request("POST", "/sandbox/payments", body) for body in bodies]
        calls = self.load(list(islice(cycle(requests), count)), AUTHORISING_CLIENTS)
        assert not calls.refused, f"{calls.refused} payments were refused"
        return [json.loads(body)["transaction"]["id"] for body in calls.bodies]

    def request(self, method: str, path: str, body: str = "") -> Request:
        headers = [
            f"Authorization: Basic {b64encode(f':{self.key}'.encode()).decode()}",
            "Content-Type: application/json",
            "Accept: application/json",
        ]
        return Request.of(method, f"/payments{path}", headers, body.encode())

    def load(self, requests: Sequence[Request], clients: int) -> Calls:
        return run_http(self.node.http, requests, clients)

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self.client.post(self.url + path, json=body).raise_for_status().json()


@contextmanager
def payments_node() -> Iterator[Api]:
    """A Tollgate whose own limits count as ever and let everything pass."""
    with TemporaryDirectory(prefix="tollgate-bench-") as folder:
        tables = Path(folder) / "payments"
        shutil.copytree(TABLES, tables)
        limits = yaml.safe_load((tables / "limits.yaml").read_text())
        _lift(limits["descriptors"])
        (tables / "limits.yaml").write_text(yaml.safe_dump(limits))
        with tollgate_node(PAYMENTS_CONFIG=str(tables)) as node:
            yield Api(node)


def _lift(descriptors: list[dict[str, Any]]) -> None:
    for descriptor in descriptors:
        if "rate_limit" in descriptor:
            descriptor["rate_limit"] = NO_LIMIT
        _lift(descriptor.get("descriptors", []))


def http_rows(api: Api, share: float) -> Iterator[Row]:
    """Captures of a hot merchant, captures over a thousand, and pages of a list."""
    hot = api.merchant()
    capture_count = int(CAPTURES * share)
    _captured(api, "warm-up", [hot], 32, capture_count // 5)
    for clients in (1, 32, 128):
        count = capture_count // 10 if clients == 1 else capture_count
        yield _captured(api, "capture, one merchant", [hot], clients, count)
    many = [api.merchant() for _ in range(int(MANY_MERCHANTS * share))]
    yield _captured(api, f"capture, {len(many):,} merchants", many, 32, 5 * len(many))
    page = api.request("GET", f"/merchants/{hot.id}/transactions?limit=50")
    for clients in (1, 32):
        yield _measured(api, "page of 50 transactions", clients, [page] * int(PAGES * share))


def _captured(api: Api, what: str, merchants: list[Merchant], clients: int, count: int) -> Row:
    ids = api.authorise(merchants, count)
    requests = [api.request("POST", f"/transactions/{each}/captures", CAPTURE) for each in ids]
    return _measured(api, what, clients, requests)


def _measured(api: Api, what: str, clients: int, requests: Sequence[Request]) -> Row:
    before = api.node.cpu_s()
    calls = api.load(requests, clients)
    after = api.node.cpu_s()
    spent = {name: (after[name] - before.get(name, 0.0)) * 1e3 / len(requests) for name in after}
    assert not calls.refused, f"{what}: {calls.refused} calls were refused"
    return Row(what, clients, calls, spent)


def http_table(share: float) -> Table:
    """Over HTTP, on a Tollgate of its own."""
    columns = ("what", "clients", "calls/s", "p50 ms", "p99 ms", *SERVICES, "rest")
    table = Table(*columns, title="HTTP", caption="last columns: ms of CPU a call")
    with payments_node() as api:
        for row in http_rows(api, share):
            table.add_row(
                row.what,
                str(row.clients),
                f"{row.calls.per_second:,.0f}",
                f"{row.calls.quantile_ms(0.5):.2f}",
                f"{row.calls.quantile_ms(0.99):.2f}",
                *(f"{row.cpu_ms[title]:.2f}" for title in SERVICES.values()),
                f"{row.rest_ms:.2f}",
            )
    return table


@click.command()
@click.option("--share", default=1.0, show_default=True, help="Scales the number of calls.")
@click.option("--entries", default=100_000, show_default=True, help="Of the large book.")
def payments(share: float, entries: int) -> None:
    """Captures and lists, over HTTP and in the core: orders per second, latency, processor time."""
    console = Console(width=WIDTH)
    with TemporaryDirectory(prefix="tollgate-bench-") as folder:
        console.print(asyncio.run(core_table(Path(folder), share)))
        console.print(asyncio.run(size_table(Path(folder), entries)))
    console.print(http_table(share))
