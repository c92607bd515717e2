"""Who may import what: the table of ARCHITECTURE.md, read off the code.

A row names things of other modules and the files that may touch them. A file touches a name by
importing it or, once its module is imported, by reading the attribute: `time.time`, `os.environ`.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.trees import nodes

TEXT = (Path(__file__).resolve().parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
ANYWHERE_BUT = "anywhere but "


@dataclass(frozen=True, slots=True)
class Row:
    """`names` may be touched only in the files that `allowed` matches; both match as a whole."""

    names: str
    allowed: str
    law: str


def read_table(text: str) -> tuple[Row, ...]:
    """The rows of the table under "Who may import what", in its own notation: a name stands for
    itself and all below it, `*` for any beginning; a place that ends in `/` for all below it, one
    without any `/` for each file of that name.
    """
    section = text.partition("## Who may import what")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    assert lines[0] == "| what | where |", lines[:1]
    return tuple(row_of(*(cell.strip() for cell in line.split("|")[1:3])) for line in lines[2:])


def row_of(what: str, where: str) -> Row:
    names = [re.escape(name).replace(r"\*", r".*") for name in items(what)]
    places = [
        re.escape(place) + (".+" if place.endswith("/") else "")
        if "/" in place
        else f"(.+/)?{re.escape(place)}"
        for place in items(where.removeprefix(ANYWHERE_BUT))
    ]
    allowed = f"({'|'.join(places)})"
    if where.startswith(ANYWHERE_BUT):
        allowed = f"(?!{allowed}).+"
    return Row(
        rf"({'|'.join(names)})(\..+)?",
        allowed,
        f"{', '.join(items(what)[:4])} only {'' if ANYWHERE_BUT in where else 'in '}{where}",
    )


def items(cell: str) -> list[str]:
    """What stands between backticks, which has to be all but the commas."""
    found = re.findall(r"`([^`]+)`", cell)
    assert found, cell
    assert ", ".join(f"`{item}`" for item in found) == cell.removeprefix(ANYWHERE_BUT), cell
    return found


TABLE = read_table(TEXT)


def find_forbidden(path: str, text: str) -> list[str]:
    """What the file at `path` touches and may not, one finding per name and line."""
    return [
        f"{path}:{line}: {name}: {row.law}"
        for line, name in sorted(set(touched(path, text)))
        for row in TABLE
        if re.fullmatch(row.names, name) and not re.fullmatch(row.allowed, path)
    ]


def touched(path: str, text: str) -> Iterator[tuple[int, str]]:
    """(line, full dotted name) of all that is imported, and of its attributes that are read."""
    known: dict[str, str] = {}
    for node in nodes(path, text):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name, bound, meant in imported(path, node):
                known[bound] = meant
                yield node.lineno, name
    for node in nodes(path, text):
        if isinstance(node, ast.Attribute) and (name := dotted(node, known)):
            yield node.lineno, name
        if isinstance(node, ast.Call) and (name := dynamically_imported(node, known)):
            yield node.lineno, name


def imported(path: str, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """(full name, name bound in the file, what that name stands for) of an import statement."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield alias.name, alias.asname or top, alias.name if alias.asname else top
    else:
        package = ["tollgate", *path.split("/")][: -node.level] if node.level else []
        module = ".".join([*package, *([node.module] if node.module else [])])
        for alias in node.names:
            name = f"{module}.{alias.name}"
            yield name, alias.asname or alias.name, name


def dotted(node: ast.expr, known: dict[str, str]) -> str:
    """The full name that `a.b.c` stands for, or "" when `a` was not imported."""
    if isinstance(node, ast.Name):
        return known.get(node.id, "")
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value, known)):
        return f"{owner}.{node.attr}"
    return ""


def dynamically_imported(call: ast.Call, known: dict[str, str]) -> str:
    """The module that `import_module("…")` or `__import__("…")` names."""
    is_builtin = isinstance(call.func, ast.Name) and call.func.id == "__import__"
    if not is_builtin and dotted(call.func, known) != "importlib.import_module":
        return ""
    match call.args:
        case [ast.Constant(value=str(name)), *_]:
            return name
    return ""


def find_misnamed_serve(path: str, text: str) -> list[str]:
    """Imports under which Ray's serve and ours could be taken for each other."""
    law = "Ray's serve is `from ray import serve as ray_serve`"
    findings = []
    for node in nodes(path, text):
        match node:
            case ast.Import(names=names):
                wrong = any(f"{alias.name}.".startswith("ray.serve.") for alias in names)
            case ast.ImportFrom(module="ray", names=names):
                wrong = any(a.name == "serve" and a.asname != "ray_serve" for a in names)
            case ast.ImportFrom(module="ray.serve"):
                wrong = True
            case _:
                continue
        if wrong:
            findings.append(f"{path}:{node.lineno}: {law}")
    return findings


def test_the_tree_keeps_to_the_table(modules: dict[str, str]) -> None:
    services = {p: t for p, t in modules.items() if p.startswith(("actors/", "serve/"))}
    assert services
    findings = [
        finding for path, text in services.items() for finding in find_forbidden(path, text)
    ]
    assert not findings, "\n".join(findings)


def test_the_table_is_read_as_it_is_written() -> None:
    text = """
## Who may import what

| what | where |
|---|---|
| `ray`, `*_pb2` | `actor.py`, `serve/node/` |
| `socket` | anywhere but `serve/x/` |

## Next

| what | where |
"""
    one, two = read_table(text)
    assert [bool(re.fullmatch(one.names, name)) for name in NAMES] == [True, True, False, True]
    assert [bool(re.fullmatch(one.allowed, path)) for path in PATHS] == [True, True, True, False]
    assert [bool(re.fullmatch(two.allowed, path)) for path in PATHS] == [False, True, True, True]
    with pytest.raises(AssertionError):
        row_of("`ray`", "`actor.py` and the like")


NAMES = ["ray", "ray.util.metrics", "rayon", "envoy.v3.rls_pb2"]
PATHS = ["serve/x/actor.py", "actor.py", "serve/node/a/b.py", "serve/nodes.py"]


def test_ray_serve_is_never_called_serve(modules: dict[str, str]) -> None:
    findings = [line for path, text in modules.items() for line in find_misnamed_serve(path, text)]
    assert not findings, "\n".join(findings)


FORBIDDEN = [
    ("actors/ratelimit/planning.py", "import ray", "ray"),
    ("serve/ratelimit/stats.py", "def f():\n    import ray.util.metrics", "ray.util.metrics"),
    ("serve/ratelimit/fronts/native.py", "from ray import ObjectRef", "ray.ObjectRef"),
    ("serve/settings/environment.py", "import importlib\nimportlib.import_module('ray')", "ray"),
    ("serve/settings/environment.py", "__import__('ray.serve')", "ray.serve"),
    ("actors/ledger/money.py", "from pydantic import BaseModel", "pydantic.BaseModel"),
    ("actors/ledger/money.py", "import starlette.types as t", "starlette.types"),
    ("actors/ledger/money.py", "import fastapi", "fastapi"),
    ("serve/ratelimit/stats.py", "import grpc", "grpc"),
    ("serve/ratelimit/metrics.py", "import prometheus_client", "prometheus_client"),
    ("serve/ratelimit/wiring.py", "from opentelemetry import trace", "opentelemetry.trace"),
    ("actors/ratelimit/actor.py", "from grpc import aio", "grpc.aio"),
    ("serve/ratelimit/json_routes.py", "import pygrpc_native", "pygrpc_native"),
    ("serve/ratelimit/health.py", "from grpc_health.v1 import health", "grpc_health.v1.health"),
    ("serve/wiring.py", "from grpc_reflection.v1alpha import x", "grpc_reflection.v1alpha.x"),
    ("serve/ratelimit/stats.py", "from envoy.v3 import rls_pb2", "envoy.v3.rls_pb2"),
    ("serve/ratelimit/stats.py", "from envoy.v3.rls_pb2 import A", "envoy.v3.rls_pb2.A"),
    ("actors/ledger/law/events.py", "import sqlite3", "sqlite3"),
    ("actors/ratelimit/redis_store.py", "import asyncpg", "asyncpg"),
    ("serve/payments/routes.py", "from sqlalchemy import text", "sqlalchemy.text"),
    ("serve/payments/routes.py", "import aiosqlite", "aiosqlite"),
    ("actors/ratelimit/windows.py", "import time\ntime.time()", "time.time"),
    ("actors/ratelimit/windows.py", "import time as t\nt.monotonic_ns()", "time.monotonic_ns"),
    ("actors/ratelimit/windows.py", "from time import perf_counter", "time.perf_counter"),
    ("serve/cli.py", "import time\nasync def f():\n    time.time()", "time.time"),
    ("serve/cli.py", "from datetime import datetime as d\nd.now()", "datetime.datetime.now"),
    ("serve/cli.py", "import datetime as dt\ndt.date.today()", "datetime.date.today"),
    ("actors/ledger/ids.py", "import random", "random"),
    ("actors/ledger/ids.py", "from uuid import uuid4", "uuid.uuid4"),
    ("serve/cli.py", "import os\nos.environ['CI']", "os.environ"),
    ("serve/cli.py", "from os import getenv", "os.getenv"),
    ("serve/catalog_auth/crawl/crawler.py", "import aiohttp", "aiohttp"),
    ("serve/payments/webhooks/calls.py", "import aiohttp", "aiohttp"),
    (
        "serve/catalog_auth/rules/schemes/http.py",
        "from urllib.request import urlopen",
        "urllib.request.urlopen",
    ),
    (
        "serve/ratelimit/wiring.py",
        "from pymemcache.client.base import Client",
        "pymemcache.client.base.Client",
    ),
    ("serve/ratelimit/wiring.py", "import redis", "redis"),
    ("serve/catalog_auth/api/routes/sign.py", "from botocore.auth import A", "botocore.auth.A"),
    (
        "actors/a/actor.py",
        "from tollgate.serve.settings import Settings",
        "tollgate.serve.settings.Settings",
    ),
    ("actors/kernel/clock.py", "import tollgate.serve", "tollgate.serve"),
    (
        "serve/payments/deployment.py",
        "from tollgate.serve.wiring import new_run",
        "tollgate.serve.wiring.new_run",
    ),
    ("actors/ratelimit/actor.py", "from ...serve import wiring", "tollgate.serve.wiring"),
    *(
        (
            f"serve/catalog_auth/{room}/walk.py",
            f"from tollgate.serve.catalog_auth import {asking}",
            f"tollgate.serve.catalog_auth.{asking}",
        )
        for room, asking in (("document", "rules"), ("rules", "verdict"), ("verdict", "api"))
    ),
    (
        "actors/ratelimit/actor.py",
        "from tollgate.actors.ledger import money",
        "tollgate.actors.ledger.money",
    ),
    ("actors/ratelimit/actor.py", "from ..ledger import money", "tollgate.actors.ledger.money"),
    ("serve/ratelimit/sinks/mapping.py", "def f():\n    import re2", "re2"),
    ("actors/kernel/errors.py", "import tollgate.actors.ledger", "tollgate.actors.ledger"),
    (
        "actors/ledger/actor.py",
        "from tollgate.actors.ratelimit import rules",
        "tollgate.actors.ratelimit.rules",
    ),
    (
        "actors/kernel/errors.py",
        "import tollgate.actors.ratelimit.rules as r",
        "tollgate.actors.ratelimit.rules",
    ),
]


@pytest.mark.parametrize(("path", "text", "name"), FORBIDDEN)
def test_the_table_finds(path: str, text: str, name: str) -> None:
    findings = find_forbidden(path, text)
    assert any(f": {name}: " in finding for finding in findings), findings


def test_every_row_of_the_table_bites() -> None:
    found = "\n".join(line for path, text, _ in FORBIDDEN for line in find_forbidden(path, text))
    assert [row.law for row in TABLE if row.law not in found] == []


ALLOWED = [
    ("actors/ratelimit/actor.py", "import ray"),
    ("serve/ratelimit/deployment.py", "from ray import serve as ray_serve"),
    ("serve/ratelimit/json_routes.py", "from starlette.requests import Request"),
    ("serve/ratelimit/fronts/grpcio.py", "import grpc\nfrom grpc_health.v1 import health_pb2"),
    ("serve/ratelimit/codec/messages.py", "from envoy.service.ratelimit.v3 import rls_pb2"),
    ("serve/commands/client.py", "import grpc"),
    ("serve/ratelimit/rule_sources/xds.py", "import grpc"),
    ("actors/ledger/storage/connections/engine.py", "import sqlite3"),
    ("actors/kernel/clock.py", "import time\ntime.time()"),
    ("serve/settings/environment.py", "import os\nos.environ.get('CI')"),
    ("actors/ratelimit/windows.py", "from time import gmtime\nimport datetime\ndatetime.UTC"),
    ("actors/ratelimit/planning.py", "def f(time):\n    return time.time()  # a parameter"),
    (
        "serve/wiring.py",
        "from tollgate.actors.ratelimit import actor\nfrom tollgate.actors.ledger import money",
    ),
    ("serve/wiring.py", "from tollgate.serve.settings import Settings"),
    ("serve/net/guarded_client.py", "import aiohttp\nfrom socket import socket"),
    ("serve/catalog_auth/sign/signer.py", "from botocore.auth import A"),
    ("serve/settings/outside/expressions.py", "import re2"),
]


@pytest.mark.parametrize(("path", "text"), ALLOWED)
def test_the_table_lets_pass(path: str, text: str) -> None:
    assert find_forbidden(path, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "import ray.serve",
        "import ray.serve.handle as handle",
        "from ray import serve",
        "from ray import serve as rserve",
        "from ray.serve import deployment",
    ],
)
def test_a_misnamed_serve_is_found(text: str) -> None:
    assert find_misnamed_serve("serve/wiring.py", text)


@pytest.mark.parametrize(
    "text",
    [
        "from ray import serve as ray_serve",
        "from ray.serve.handle import DeploymentHandle",
        "import ray",
        "import tollgate.serve",
        "import ray.serverless",
    ],
)
def test_a_well_named_serve_passes(text: str) -> None:
    assert find_misnamed_serve("serve/wiring.py", text) == []
