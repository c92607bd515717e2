"""Runs h2load and reads its per-request log: it prints means, and it is the tail that matters."""

import subprocess
import tempfile
from pathlib import Path

from scripts.benchmarks.grpc_load import Load

GRPC_HEADERS = ("content-type: application/grpc", "te: trailers")


def run_h2load(
    url: str,
    body: Path,
    *,
    calls: int,
    in_flight: int,
    connections: int = 8,
    headers: tuple[str, ...] = GRPC_HEADERS,
    is_http1: bool = False,
    per_second: int | None = None,
) -> Load:
    """Send `calls` requests with this body. `per_second` bounds the rate of the whole run."""
    connections = in_flight if is_http1 else min(connections, in_flight)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests.tsv"
        command = ["h2load", "-n", str(calls), "-c", str(connections)]
        command += ["-d", str(body)] if body.stat().st_size else []
        command += ["-m", str(1 if is_http1 else in_flight // connections)]
        command += ["--log-file", str(log)]
        command += ["--h1"] if is_http1 else []
        command += ["--rps", str(max(1, per_second // connections))] if per_second else []
        for header in headers:
            command += ["-H", header]
        subprocess.run([*command, url], check=True, stdout=subprocess.DEVNULL)
        return _load(log)


def _load(log: Path) -> Load:
    begun_us: list[int] = []
    ended_us: list[int] = []
    latencies_s: list[float] = []
    errors = 0
    for line in log.read_text().splitlines():
        begun, status, took = line.split("\t")[:3]
        begun_us.append(int(begun))
        ended_us.append(int(begun) + int(took))
        # 429 is a decision as well.
        if status in ("200", "429"):
            latencies_s.append(int(took) / 1e6)
        else:
            errors += 1
    seconds = (max(ended_us) - min(begun_us)) / 1e6
    return Load(seconds, sorted(latencies_s), errors)
