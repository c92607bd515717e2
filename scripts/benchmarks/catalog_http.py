"""The doors of catalog auth in a Tollgate of its own: documents one by one, and in bulk.

The load is made on the same machine, so compare within a run.
"""

import re
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from time import perf_counter

import click
import msgspec

from scripts.benchmarks.http_load import Request, run_http
from scripts.benchmarks.tollgate_node import tollgate_node

CLIENTS = (1, 32)
BULK_CALLS = 3
# What an HTTP call of a bulk may take.
PATIENCE_S = 600.0
PIECE_BYTES = 1 << 20
SUMMARY = re.compile(rb'"summary":.*"lines":(\d+)')


def print_http(texts: Sequence[bytes], documents: int) -> None:
    """Documents per second over HTTP, judged by one replica with all rules."""
    with tollgate_node() as node:
        kind = ["Content-Type: application/json"]
        calls = [Request.of("POST", "/catalog-auth/validate", kind, text) for text in texts]
        run_http(node.http, calls, 1)  # (warms up)
        for clients in CLIENTS:
            done = run_http(node.http, list(islice(cycle(calls), documents)), clients)
            click.echo(
                f"HTTP, one by one, {clients:2} clients: {done.per_second:,.0f} documents/s, "
                f"median {done.quantile_ms(0.5):.1f} ms, 99th of 100 {done.quantile_ms(0.99):.1f} "
                f"ms, {done.refused} refused"
            )
        # A line is compact, as who has many documents writes them.
        lines = [msgspec.json.encode(msgspec.json.decode(text)) + b"\n" for text in texts]
        speeds = [bulk_per_second(node.http, lines, documents) for _ in range(BULK_CALLS)]
        click.echo(
            f"HTTP, in bulk, {documents:,} documents in a call: {max(speeds):,.0f} documents/s "
            f"(from {min(speeds):,.0f})"
        )


def bulk_per_second(address: tuple[str, int], lines: Sequence[bytes], documents: int) -> float:
    """One call, written and read at the same time, from its first byte to its last."""
    length = sum(len(line) for line in islice(cycle(lines), documents))
    head = (
        "POST /catalog-auth/validate/bulk HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/x-ndjson\r\nContent-Length: {length}\r\n\r\n"
    )

    def send() -> None:
        connection.sendall(head.encode())
        for line in islice(cycle(lines), documents):
            connection.sendall(line)

    begun_s = perf_counter()
    with (
        socket.create_connection(address, timeout=PATIENCE_S) as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        sending = pool.submit(send)
        end = b""
        while piece := connection.recv(PIECE_BYTES):
            end = (end + piece)[-4096:]
        sending.result()
    took_s = perf_counter() - begun_s
    found = SUMMARY.search(end)
    assert found is not None, end[-500:]
    assert int(found[1]) == documents, found
    return documents / took_s
