"""`scripts/bench catalog`: what judging a catalog document costs, beside two ways to ask less.

The baselines answer one question, whether the official schema takes a document; Tollgate answers
it too, and runs all of its rules. Each way reads the same texts, decoding included. Speeds are per
second of processor time, so that a busy machine changes less.
"""

import gc
import json
import os
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import click
import jsonschema_rs
import msgspec
import psutil
from rich.console import Console
from rich.table import Table

from scripts.benchmarks.catalog_http import print_http
from tollgate.serve.catalog_auth.document.decoding import decode
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, item, scene
from tollgate.serve.catalog_auth.verdict.report import validate_raw

STAC_VALID = ("stac-valid==4.6.1", "fastjsonschema==2.22.3", "jsonschema==4.26.0")
STAC_VALID_ENVIRONMENT = Path(".cache/stac-valid")
ENGINE = Path(__file__).with_name("stac_valid_engine.py")
SINGLE = ("Feature", "Collection", "Catalog")
MIB = 1024 * 1024
# The documents that are made when none are given: as many assets, each with an alternate.
ASSETS = (1, 3, 5, 10, 20, 40, 80)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to judge, with documents per second of processor time by round."""

    name: str
    per_second: Sequence[float]

    @property
    def median(self) -> float:
        return statistics.median(self.per_second)


def made_documents() -> list[bytes]:
    """Items as data stores publish them, indented: two schemes, an alternate for each asset."""
    texts = []
    for count in ASSETS:
        assets = {
            f"band-{number}": scene(
                "s3",
                href=f"s3://bucket/scenes/2026/01/01/scene-{number}.tif",
                type="image/tiff; application=geotiff; profile=cloud-optimized",
                title=f"Band {number}",
                roles=["data"],
                bands=[{"name": f"B{number}", "description": "A band", "gsd": 10, "scale": 0.1}],
                alternate={"https": scene("login", href=f"https://data.example.com/{number}.tif")},
            )
            for number in range(count)
        }
        document = item({"s3": {"type": "s3"}, "login": LOGIN}, assets)
        texts.append(msgspec.json.format(msgspec.json.encode(document), indent=2))
    return texts


def time_in_turns(
    ways: dict[str, Callable[[bytes], object]], texts: list[bytes], rounds: int
) -> list[Way]:
    """Every way has its turn in every round, so that all see the same machine."""
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    for round_ in range(rounds + 1):  # (the first one warms up)
        for name, judge in ways.items():
            gc.collect()
            begun_s = process_time()
            for text in texts:
                judge(text)
            if round_:
                speeds[name].append(len(texts) / (process_time() - begun_s))
    return [Way(name, each) for name, each in speeds.items()]


def stac_valid(texts: list[bytes], schema: Path, rounds: int) -> Way:
    """stac-valid's fast engine, in an environment of its own."""
    python = STAC_VALID_ENVIRONMENT / "bin/python"
    if not python.exists():
        subprocess.run(["uv", "venv", "--quiet", STAC_VALID_ENVIRONMENT], check=True)
        install = ["uv", "pip", "install", "--quiet", "--python", str(python)]
        subprocess.run([*install, *STAC_VALID], check=True)
    with TemporaryDirectory() as folder:
        lines = Path(folder) / "documents"
        lines.write_text("\n".join(json.dumps(text.decode()) for text in texts))
        done = subprocess.run(
            [python, ENGINE, lines, schema, str(rounds)],
            check=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "STAC_VALIDATOR_CACHE_DIR": folder},
        )
    return Way("stac-valid, fast engine, the schema alone", json.loads(done.stdout)["per_second"])


def print_ways(title: str, ways: list[Way], bytes_each: float) -> None:
    table = Table(title=title)
    for column in ("way", "documents/s", "from", "to", "us each", "MB/s", "times the first"):
        table.add_column(column, justify="left" if column == "way" else "right")
    for way in ways:
        table.add_row(
            way.name,
            f"{way.median:,.0f}",
            f"{min(way.per_second):,.0f}",
            f"{max(way.per_second):,.0f}",
            f"{1e6 / way.median:,.0f}",
            f"{way.median * bytes_each / 1e6:,.0f}",
            f"{way.median / ways[0].median:.2f}",
        )
    Console(width=110).print(table)


def print_memory(texts: list[bytes], documents: int) -> None:
    """What is held after so many documents, in ten steps."""
    process = psutil.Process()
    sizes = []
    for _ in range(10):
        for text in islice(cycle(texts), documents // 10):
            validate_raw(text)
        sizes.append(process.memory_info().rss / MIB)
    steps = " ".join(f"{size:.0f}" for size in sizes)
    click.echo(f"memory over {documents:,} documents, MiB: {steps}")


@click.command()
@click.option(
    "--documents",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of documents; without it, some are made.",
)
@click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The official schema of the version they declare: without it there is no baseline.",
)
@click.option("--rounds", default=20, show_default=True)
@click.option("--memory-documents", default=100_000, show_default=True)
@click.option("--http-documents", default=0, help="Over HTTP, too: so many in each call or run.")
def catalog(
    folder: Path | None,
    schema: Path | None,
    rounds: int,
    memory_documents: int,
    http_documents: int,
) -> None:
    """Documents judged per second by the core, beside jsonschema-rs and stac-valid; its memory;
    and over HTTP, one by one and in bulk."""
    paths = sorted(folder.glob("*.json")) if folder else []
    texts = [path.read_bytes() for path in paths] if folder else made_documents()
    mean = statistics.mean(map(len, texts))
    whole = time_in_turns({"Tollgate": validate_raw, "decoding alone": decode}, texts, rounds)
    print_ways(f"{len(texts)} documents, {mean / 1000:.1f} kB on average", whole, mean)
    if schema is not None:
        single = [text for text in texts if kind_of(text) in SINGLE]
        official = jsonschema_rs.validator_for(json.loads(schema.read_text()))

        def asked_of_the_schema(text: bytes) -> bool:
            return official.is_valid(decode(text))

        ways: dict[str, Callable[[bytes], object]]
        ways = {"Tollgate, all rules": validate_raw, "jsonschema-rs": asked_of_the_schema}
        beside = [*time_in_turns(ways, single, rounds), stac_valid(single, schema, rounds)]
        mean = statistics.mean(map(len, single))
        print_ways(f"{len(single)} of them are single documents: beside baselines", beside, mean)
    if memory_documents:
        print_memory(texts, memory_documents)
    if http_documents:
        print_http(texts, http_documents)


def kind_of(text: bytes) -> Any:
    document = msgspec.json.decode(text)
    return document.get("type") if isinstance(document, dict) else None
