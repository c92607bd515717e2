"""Who may import what: the table of ARCHITECTURE.md, read off the code.

A row names things of other modules and the files that may touch them. A file touches a name by
importing it or, once its module is imported, by reading the attribute: `time.time`, `os.environ`.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.architecture.trees import tree


@dataclass(frozen=True, slots=True)
class Row:
    """`names` may be touched only in the files that `allowed` matches; both match as a whole."""

    names: str
    allowed: str
    law: str


ANYWHERE_BELOW = r"(?:\..+)?"
TABLE = (
    Row(
        rf"ray{ANYWHERE_BELOW}",
        r"(.+/)?(actor|deployment|wiring|cli)\.py|serve/node/\w+\.py",
        "Ray only in actor.py, deployment.py, wiring.py, cli.py and serve/node/",
    ),
    Row(
        rf"(fastapi|starlette|pydantic){ANYWHERE_BELOW}",
        r"serve/.+",
        "web frameworks and pydantic only under serve/",
    ),
    Row(
        rf"(grpc|grpc_health|grpc_reflection|pygrpc_native|.+_pb2(_grpc)?){ANYWHERE_BELOW}",
        r"serve/ratelimit/(codec|fronts|rule_sources)/\w+\.py|serve/ratelimit/client\.py"
        r"|serve/commands/client\.py",
        "gRPC and its messages only in the codec, the fronts, the sources of rules and the client",
    ),
    Row(
        rf"(redis|pymemcache|statsd|datadog|opentelemetry|prometheus_client){ANYWHERE_BELOW}",
        r"serve/ratelimit/(backends|sinks)/\w+\.py",
        "clients of other servers' counters and statistics only in backends/ and sinks/",
    ),
    Row(
        rf"(sqlalchemy|alembic|sqlite3|aiosqlite|asyncpg){ANYWHERE_BELOW}",
        r"actors/ledger/(storage|proof|backup)/.+\.py",
        "databases only in the ledger's storage, its proof and its backup",
    ),
    Row(
        r"time\.(time|monotonic|perf_counter|process_time)(_ns)?|"
        r"datetime\.datetime\.(now|utcnow|today)|datetime\.date\.today|"
        rf"(random|uuid){ANYWHERE_BELOW}|os\.(environb?|getenvb?|putenv)",
        r"actors/kernel/clock\.py|serve/settings/\w+\.py|serve/wiring\.py",
        "time, chance and the environment come in through clock.py, settings/ and wiring.py",
    ),
    Row(
        rf"(aiohttp|asyncio\.open_connection|httpx|requests|socket|urllib\.request|urllib3)"
        rf"{ANYWHERE_BELOW}",
        r"(?!serve/catalog_auth/).+",
        "catalog auth opens no sockets: serve/net/ does",
    ),
    Row(
        rf"aiohttp{ANYWHERE_BELOW}",
        r"serve/net/guarded_client\.py",
        "addresses that others have told are called by the one guarded client",
    ),
    Row(
        rf"botocore{ANYWHERE_BELOW}",
        r"serve/catalog_auth/sign/signer\.py",
        "signatures of object stores are made in sign/signer.py",
    ),
    Row(
        rf"tollgate\.serve{ANYWHERE_BELOW}",
        r"serve/.+",
        "actors/ never imports serve/",
    ),
    Row(
        rf"tollgate\.serve\.wiring{ANYWHERE_BELOW}",
        r"serve/node/process\.py",
        "the composition root is for entry points alone",
    ),
    Row(
        rf"tollgate\.actors\.ledger{ANYWHERE_BELOW}",
        r"(?!actors/(ratelimit|kernel)/).+",
        "the rate limit and the kernel know nothing of the ledger",
    ),
    Row(
        rf"tollgate\.actors\.ratelimit{ANYWHERE_BELOW}",
        r"(?!actors/(ledger|kernel)/).+",
        "the ledger and the kernel know nothing of the rate limit",
    ),
)


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
    module = tree(path, text)
    known: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name, bound, meant in imported(path, node):
                known[bound] = meant
                yield node.lineno, name
    for node in ast.walk(module):
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
    for node in ast.walk(tree(path, text)):
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
    (
        "actors/ratelimit/actor.py",
        "from tollgate.actors.ledger import money",
        "tollgate.actors.ledger.money",
    ),
    ("actors/ratelimit/actor.py", "from ..ledger import money", "tollgate.actors.ledger.money"),
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
