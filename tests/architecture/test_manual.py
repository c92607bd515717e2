"""README, ARCHITECTURE and docs/ are held to the code, in what they say of the running service.

Commands and their options exist, settings exist and have the defaults and ports that tables give
them, links lead to files and headings, metrics in alarms and dashboards are exported. Paths and the
tree are in test_documents.py, sections that the code cites in test_citations.py.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import PurePosixPath

import click
import grpc
import pytest
import yaml

from tests.architecture.documents import (
    built,
    code_words,
    commands,
    links,
    slugs,
    tables,
)
from tollgate.actors.ratelimit.statistics.tallies import RULE_STATS, RULES_PREFIX, Tallies
from tollgate.serve.cli import main
from tollgate.serve.ratelimit.backends.redis.connections import ConnectionCounts
from tollgate.serve.ratelimit.backends.redis.store import PER_SECOND_POOL, POOL
from tollgate.serve.ratelimit.sinks.prometheus_names import (
    RESPONSE_TIME_FAMILY,
    counter_metric,
    escaped,
)
from tollgate.serve.settings.outside.mogrifiers import mogrifier_rows
from tollgate.serve.settings.rows import Row
from tollgate.serve.settings.table import TABLE

SETTINGS: dict[str, Row] = {name: row for row in TABLE.values() for name in row.names}
# Words in capitals that are no settings: statuses on the wire, and what others read.
WIRE_WORDS = frozenset(code.name for code in grpc.StatusCode) | {"OVER_LIMIT", "NOT_SERVING"}
OTHERS_PREFIXES = ("RAY_", "OTEL_", "AWS_", "GF_", "GRAFANA_")
CAPITALS = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9]*(?:(?:_[A-Z0-9]+)+(?:_?\*)?|_\*)")
METRIC = re.compile(r"\b(?:(?:ratelimit|payments)_\w+|catalog_request\w*)(?![\w.])")


@pytest.fixture(scope="module")
def documents(texts: dict[str, str]) -> dict[str, str]:
    """The documents that people read: those at the root, and the manual."""
    return {path: texts[path] for path in texts if re.fullmatch(r"(docs/)?[\w-]+\.md", path)}


@pytest.fixture(scope="module")
def folders(texts: dict[str, str]) -> frozenset[str]:
    """Every folder with a file in it."""
    parents = (PurePosixPath(path).parents for path in texts)
    return frozenset(str(parent) for chain in parents for parent in chain if str(parent) != ".")


@pytest.fixture(scope="module")
def constants(modules: dict[str, str]) -> frozenset[str]:
    """The names of all constants in the code, and its strings that look like one."""
    named = re.compile(r"""^ *([A-Z][A-Z0-9_]+)\b *[:=]|["']([A-Z][A-Z0-9_]+)["']""", re.MULTILINE)
    sources = (text for path, text in modules.items() if not path.startswith("tests/"))
    return frozenset(name for text in sources for pair in named.findall(text) for name in pair)


def find_wrong_commands(path: str, text: str) -> list[str]:
    """Commands, sub-commands and options that `tollgate` does not have."""
    return [f"{path}: {fault}" for words in commands(built(text)) if (fault := fault_of(words))]


def fault_of(words: list[str]) -> str:
    """What is wrong with the words after `tollgate`; empty when nothing is."""
    command: click.Command = main
    for word in words:
        if word.startswith("-"):
            option = word.partition("=")[0]
            known = {name for each in command.params for name in each.opts} | {"-h", "--help"}
            if option not in known:
                return f"`{command.name}` has no option {option}"
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return f"there is no command `{word}` in `tollgate {' '.join(words)}`"
            command = found
    return ""


def find_unknown_settings(path: str, text: str, constants: frozenset[str]) -> list[str]:
    """Names in capitals that are neither a setting nor anything else that we know."""
    return [
        f"{path}: {name}: there is no such setting"
        for name in sorted(set(CAPITALS.findall(code_words(built(text)))))
        if not is_known(name, constants)
    ]


def is_known(name: str, constants: frozenset[str]) -> bool:
    if name.startswith(OTHERS_PREFIXES) or name in WIRE_WORDS | constants:
        return True
    if name.endswith("*"):
        return any(setting.startswith(name.rstrip("*")) for setting in SETTINGS)
    return name in SETTINGS or any(mogrifier_rows([name]))


def find_wrong_defaults(path: str, text: str) -> list[str]:
    """Cells of tables with a setting and its default, or its port, that say something else."""
    findings = []
    for table in tables(text):
        for row in table:
            if "setting" not in row:
                continue
            names = re.findall(r"`([A-Z0-9_]+)`", row["setting"])
            if "default" in row:
                given = [row["default"].strip("`")]
            elif "port" in row:
                given = re.findall(r"\d+", row["port"])
            else:
                continue
            meant = [default_of(name, is_port="port" in row) for name in names]
            if names and given != meant:
                findings.append(f"{path}: {', '.join(names)}: {given}, but the code says {meant}")
    return findings


def default_of(name: str, *, is_port: bool) -> str:
    if name not in SETTINGS:
        return "no such setting"
    default = SETTINGS[name].default
    return default.rpartition(":")[2] if is_port else default


def find_unknown_ports(path: str, text: str) -> list[str]:
    """Ports in tables without settings that are no setting's default."""
    known = {default_of(name, is_port=True) for name in SETTINGS}
    return [
        f"{path}: port {port} is no setting's default"
        for table in tables(text)
        for row in table
        if "port" in row and "setting" not in row
        for port in re.findall(r"\d+", row["port"])
        if port not in known
    ]


def find_dead_links(
    path: str, text: str, texts: dict[str, str], folders: Iterable[str]
) -> list[str]:
    """Links within the checkout that lead to no file, or to no heading in it."""
    findings = []
    for link in links(text):
        target, _, anchor = link.partition("#")
        whole = normal(PurePosixPath(path).parent / target) if target else path
        if whole not in texts and whole not in folders:
            findings.append(f"{path}: {link}: there is no such file")
        elif anchor and anchor not in slugs(texts[whole]):
            findings.append(f"{path}: {link}: there is no such heading")
    return findings


def normal(path: PurePosixPath) -> str:
    """The path without its `..`."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


@cache
def exported_metrics() -> frozenset[str]:
    """The Prometheus families of all statistics whose names the code spells out."""
    families = {counter_metric(f"{RULES_PREFIX}d.k.{stat}").family for stat in RULE_STATS}
    histogram = {f"{RESPONSE_TIME_FAMILY}{end}" for end in ("", "_bucket", "_sum", "_count")}
    return frozenset(families | histogram)


@cache
def connection_metrics() -> frozenset[str]:
    """The families of connections to Redis, whose names are put together."""
    tallies = Tallies("front")
    for scope in (POOL, PER_SECOND_POOL):
        connections = ConnectionCounts(scope, tallies)
        connections.open()
        connections.close()
    drained = tallies.drain()
    return frozenset(map(escaped, (*drained.counts, *drained.gauges)))


def find_unknown_metrics(path: str, text: str, known: frozenset[str]) -> list[str]:
    """Metrics that are named and not exported."""
    return [
        f"{path}: {name}: no such metric is exported"
        for name in sorted(set(METRIC.findall(text)))
        if name not in known and not (name.endswith("_") and any(k.startswith(name) for k in known))
    ]


SPELLED = re.compile(r'"((?:ratelimit|payments|catalog)\.[\w.]+)"')
NAMED_HERE = re.compile(r"(payments|catalog)\.[\w.]*\w")
ALARMS = "configs/prometheus/alerts.yml"


@pytest.fixture(scope="module")
def metrics(modules: dict[str, str]) -> frozenset[str]:
    """The families above, and those of every statistic whose whole name stands in the code."""
    names = {n for path, text in modules.items() if path < "tests" for n in SPELLED.findall(text)}
    mapped = {counter_metric(name).family for name in names} | set().union(*map(families, names))
    called = {counter_metric("ratelimit_server.ShouldRateLimit.total_requests").family}
    return exported_metrics() | mapped | called | connection_metrics()


def families(statistic: str) -> set[str]:
    """The names under which a statistic of no mapping of its own is on the page."""
    family, parts = escaped(statistic), ("_bucket", "_sum", "_count")
    if statistic.endswith(".duration"):
        family += "_seconds"
    is_histogram = statistic.endswith((".duration", ".orders"))
    return {family, *(f"{family}{part}" for part in parts if is_histogram)}


def find_unheld(path: str, text: str, texts: dict[str, str]) -> list[str]:
    """Rows of a table of costs that name no test, and tests that are not there."""
    findings = []
    for table in tables(text):
        for row in table:
            held = row.get("held by")
            if held is None or held == "the same":
                continue
            named = re.findall(r"`(tests/[\w/]+\.py)`", held)
            if not named:
                findings.append(f"{path}: {row['door']}: names no test")
            findings += [
                f"{path}: {row['door']}: {name} has no tests"
                for name in named
                if "\ndef test_" not in texts.get(name, "")
            ]
    return findings


def test_costs_are_held_by_tests(texts: dict[str, str]) -> None:
    path = "docs/operations.md"
    (costs,) = (table for table in tables(texts[path]) if "held by" in table[0])
    assert len(costs) > 10
    assert find_unheld(path, texts[path], texts) == []


def test_a_cost_that_no_test_holds_is_found() -> None:
    text = "| door | held by |\n|---|---|\n| a | `tests/a.py` |\n| b | `tests/b.py` |\n| c | c |\n"
    texts = {"tests/a.py": "\ndef test_a"}
    assert find_unheld("x.md", text, texts) == [
        "x.md: b: tests/b.py has no tests",
        "x.md: c: names no test",
    ]


def test_commands_exist(documents: dict[str, str]) -> None:
    assert sum(len(list(commands(text))) for text in documents.values()) > 30
    assert [line for each in documents.items() for line in find_wrong_commands(*each)] == []


def test_a_wrong_command_is_found() -> None:
    text = (
        "Say `tollgate ledger verfy` or `tollgate up --detached`, `tollgate client -domain x`.\n"
        "## Not built yet\n`tollgate fly`\n"
    )
    assert find_wrong_commands("x.md", text) == [
        "x.md: there is no command `verfy` in `tollgate ledger verfy`",
        "x.md: `up` has no option --detached",
    ]


def test_settings_exist(documents: dict[str, str], constants: frozenset[str]) -> None:
    found = [line for each in documents.items() for line in find_unknown_settings(*each, constants)]
    assert found == []


def test_an_unknown_setting_is_found() -> None:
    text = "`GRPC_PRT` is `GRPC_PORT`; `REDIS_*` and `KVSTOR_*`; `RAY_AUTH_MODE`, `NOT_FOUND`"
    assert find_unknown_settings("x.md", text, frozenset()) == [
        "x.md: GRPC_PRT: there is no such setting",
        "x.md: KVSTOR_*: there is no such setting",
    ]


def test_defaults_and_ports_are_those_of_the_code(documents: dict[str, str]) -> None:
    assert [line for each in documents.items() for line in find_wrong_defaults(*each)] == []
    assert [line for each in documents.items() for line in find_unknown_ports(*each)] == []


def test_a_wrong_default_is_found() -> None:
    text = (
        "| setting | default |\n|---|---|\n| `DRAIN_GRACE` | `10s` |\n| `LOG_LEVEL` | `INFO` |\n\n"
        "| port | setting |\n|---|---|\n| 8081 | `GRPC_PORT` |\n| 80 | `PORT` |\n\n"
        "| port | what |\n|---|---|\n| 9090, 9101 | metrics |\n| 9091 | none |\n"
    )
    assert find_wrong_defaults("x.md", text) == [
        "x.md: LOG_LEVEL: ['INFO'], but the code says ['WARN']",
        "x.md: PORT: ['80'], but the code says ['8080']",
    ]
    assert find_unknown_ports("x.md", text) == ["x.md: port 9091 is no setting's default"]


def test_links_lead_somewhere(
    documents: dict[str, str], texts: dict[str, str], folders: frozenset[str]
) -> None:
    found = [line for each in documents.items() for line in find_dead_links(*each, texts, folders)]
    assert found == []


def test_a_dead_link_is_found() -> None:
    texts = {"docs/a.md": "# A. One\n[b](b.md) [up](../R.md#two-three) [self](#a-one) [x](#b)"}
    texts["R.md"] = "## Two, three"
    assert find_dead_links("docs/a.md", texts["docs/a.md"], texts, ()) == [
        "docs/a.md: b.md: there is no such file",
        "docs/a.md: #b: there is no such heading",
    ]


def test_metrics_are_exported(
    documents: dict[str, str], texts: dict[str, str], metrics: frozenset[str]
) -> None:
    assert find_unknown_metrics("x.md", "ratelimit_counters_lost", metrics) != []
    dashboard = texts["configs/grafana/ratelimit.json"]
    shown = " ".join(expressions(json.loads(dashboard)))
    assert METRIC.search(shown), "the dashboard asks for metrics"
    found = find_unknown_metrics("the dashboard", shown, metrics)
    alarms = " ".join(expressions(yaml.safe_load(texts[ALARMS])))
    found += find_unknown_metrics(ALARMS, alarms, metrics)
    for path in ("docs/operations.md", "docs/ratelimit.md"):
        found += find_unknown_metrics(path, code_words(documents[path]), metrics)
    assert found == []


def test_processes_that_hang_sound_an_alarm(texts: dict[str, str]) -> None:
    assert "increase(ratelimit_actors_ended[15m]) > 3" in texts[ALARMS]
    assert "ratelimit_actors_ended" in texts["configs/grafana/ratelimit.json"]


def expressions(node: object) -> Iterator[str]:
    """Every `expr` in a dashboard."""
    if isinstance(node, dict):
        if isinstance(node.get("expr"), str):
            yield node["expr"]
        for value in node.values():
            yield from expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value)


def test_metrics_of_payments_and_catalog_auth_are_in_the_manual(
    documents: dict[str, str], modules: dict[str, str]
) -> None:
    names = {n for path, text in modules.items() if path < "tests" for n in SPELLED.findall(text)}
    own = {min(families(name)) for name in names if NAMED_HERE.fullmatch(name)}
    assert len(own) > 20
    table, _, _ = documents["docs/operations.md"].partition("## Alarms worth waking for")
    assert {name for name in own if f"`{name}`" not in table} == set()


def test_alarms_say_what_they_mean(texts: dict[str, str]) -> None:
    alarms = yaml.safe_load(texts[ALARMS])
    rules = [rule for group in alarms["groups"] for rule in group["rules"]]
    assert rules
    for rule in rules:
        assert {"alert", "expr", "annotations"} <= rule.keys() <= {*rule, "for"}
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["expr"].count("(") == rule["expr"].count(")")
