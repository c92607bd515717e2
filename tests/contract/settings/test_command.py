"""`tollgate settings`: the table, the list, the errors."""

import json

import pytest
from click.testing import CliRunner, Result

from tollgate.serve.commands import settings as command
from tollgate.serve.settings.table import TABLE


def run(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], *arguments: str) -> Result:
    monkeypatch.setattr(command, "process_environment", lambda: environ)
    return CliRunner().invoke(command.settings, arguments)


def test_every_setting_is_a_line_under_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, {"REDIS_POOL_SIZE": "20"})
    head, *lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert result.stderr == ""
    assert [line.split()[0] for line in lines] == list(TABLE)
    line = next(line for line in lines if line.startswith("KVSTORE_POOL_SIZE "))
    cells = [line[head.index(column) :].split()[0] for column in ("NAME", "VALUE", "DEFAULT")]
    assert cells == ["KVSTORE_POOL_SIZE", "20", "10"]
    assert line[head.index("SOURCE") :].startswith("environment (REDIS_POOL_SIZE)")
    assert line.endswith(" REDIS_POOL_SIZE")


def test_json_has_every_setting_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, {"REDIS_AUTH": "s3cret"}, "--json")
    items = {item["name"]: item for item in json.loads(result.stdout)}
    assert items.keys() == TABLE.keys()
    assert items["KVSTORE_AUTH"]["value"] == "*****"
    assert items["KVSTORE_AUTH"]["other_names"] == ["REDIS_AUTH"]
    assert items["PORT"]["source"] == "default"
    assert "s3cret" not in result.output


def test_a_terminal_gets_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_is_terminal", lambda: True)
    result = run(monkeypatch, {"KVSTORE_URL": "[bold]", "BACKEND_TYPE": "actors"})
    assert result.exit_code == 0
    assert "│" in result.stdout
    # What looks like markup is a value all the same.
    assert "[bold]" in result.stdout
    assert all(name in result.stdout for row in TABLE.values() for name in row.names)


def test_bad_values_end_with_1_and_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, {"PORT": "abc", "SHADOW_MODE": "maybe"})
    assert result.exit_code == 1
    assert result.stdout == ""
    assert [line.partition(":")[0] for line in result.stderr.splitlines()] == [
        "PORT",
        "SHADOW_MODE",
    ]


def test_what_is_misspelt_is_said_beside_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, {"GRPC_PROT": "1"})
    assert result.exit_code == 0
    assert result.stdout.startswith("NAME ")
    assert [line.partition(":")[0] for line in result.stderr.splitlines()] == ["GRPC_PROT"]


def test_a_value_stays_on_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, {"CACHE_KEY_PREFIX": "a\nb\x1b[1m"})
    assert r"a\nb\x1b[1m" in result.stdout
    assert len(result.stdout.splitlines()) == len(TABLE) + 1
