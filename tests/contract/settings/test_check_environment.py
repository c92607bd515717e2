"""`tollgate check-environment`: the lines, the end, and files that are none."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.ratelimit.migration_chapter import settings_of, taken_away_in
from tollgate.serve.commands.environment.command import check_environment
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import Backend

DEPLOYMENT = """\
# a deployment of the reference
export LOG_LEVEL="debug"
BACKEND_TYPE=memcache
MEMCACHE_HOST_PORT=cache:11211
GOMAXPROCS=2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rate.env"
    path.write_text(DEPLOYMENT)
    return path


def run(*arguments: object, given: str = "") -> Result:
    return CliRunner().invoke(check_environment, [str(each) for each in arguments], input=given)


def test_a_line_for_each_variable_and_a_verdict(file: Path) -> None:
    result = run(file)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[:4] == [
        "   2  LOG_LEVEL           means    LOG_LEVEL = DEBUG (lowest level that is logged)",
        "   3  BACKEND_TYPE        means    BACKEND_TYPE = altcache (who counts)",
        "   4  MEMCACHE_HOST_PORT  means    ALTCACHE_HOST_PORT = cache:11211 "
        "(nodes of Memcached, host:port,host:port)",
        "   5  GOMAXPROCS          ignored  it tunes the Go runtime, which is not here",
    ]
    assert "Not in the file, and not as in the reference:" in lines
    assert lines[-1] == "3 means, 1 ignored: a start with this file would be taken"


def test_what_a_start_refuses_ends_with_1(file: Path) -> None:
    file.write_text(f"{DEPLOYMENT}PORT=http\nMEMCACHE_SRV=_m._tcp.a\nno sense\n")
    result = run(file)
    assert result.exit_code == 1
    assert "   6  PORT                REFUSED  'http' is not a whole" in result.stdout
    assert "   8                      REFUSED  is not written NAME=VALUE" in result.stdout
    assert "\nRefused:\n  MEMCACHE_HOST_PORT and MEMCACHE_SRV: both say" in result.stdout
    assert result.stdout.endswith("a start with this file would be refused\n")


def test_docker_keeps_quotes(file: Path) -> None:
    file.write_text('LOG_LEVEL="debug"\n')
    assert run(file).exit_code == 0
    result = run("--docker", file)
    assert result.exit_code == 1
    assert "(the quotes are part of the value)" in result.stdout


def test_json_has_the_same(file: Path) -> None:
    document = json.loads(run("--json", file).stdout)
    assert document["lines"][0] == {
        "line": 2,
        "name": "LOG_LEVEL",
        "fate": "means",
        "text": "LOG_LEVEL = DEBUG (lowest level that is logged)",
    }
    assert document["refusals"] == []
    assert document["isRefused"] is False


def test_the_standard_input_is_a_file() -> None:
    assert "LOG_LEVEL = ERROR" in run("-", given="LOG_LEVEL=error\n").stdout


def test_no_secret_is_shown(file: Path) -> None:
    file.write_text("REDIS_AUTH=s3cret\nSOME_TOKEN=s3cret\nDEBUG_TRACING_KEY=s3cret\n's3cret\n")
    for arguments in ((file,), ("--json", file), ("--docker", file)):
        assert "s3cret" not in run(*arguments).output


def test_what_cannot_be_read_ends_with_2(file: Path, tmp_path: Path) -> None:
    file.write_bytes(b"A=\xff\n")
    assert run(file).exit_code == 2
    assert run(file).stderr == f"{file}: is no text in UTF-8\n"
    absent = tmp_path / "absent"
    assert run(absent).exit_code == 2
    assert run(absent).stderr == f"{absent}: cannot be read: No such file or directory\n"
    assert run(tmp_path).exit_code == 2


def test_the_settings_of_each_step_of_a_migration_are_taken(tmp_path: Path) -> None:
    def counts_in(given: dict[str, str]) -> tuple[Backend, Backend | None]:
        file = tmp_path / "ratelimit.env"
        file.write_text("\n".join(f"{name}={value}" for name, value in given.items()))
        result = run("--json", file)
        assert result.exit_code == 0, result.output
        fates = {line["name"]: line["fate"] for line in json.loads(result.stdout)["lines"]}
        assert fates == dict.fromkeys(given, "means"), "each has an effect"
        counting = Settings.from_environment(given).counting
        return counting.backend, counting.shadow

    given = {"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": "redis:6379", "REDIS_TIMEOUT": "15ms"}
    assert counts_in(given) == (Backend.KVSTORE, None)
    assert counts_in(given | settings_of(4)) == (Backend.KVSTORE, Backend.ACTORS)
    assert counts_in(given | settings_of(5)) == (Backend.ACTORS, Backend.KVSTORE)
    assert taken_away_in(6) == ["REDIS_URL", "COUNTING_SHADOW"]
    last = {name: value for name, value in settings_of(5).items() if name not in taken_away_in(6)}
    assert counts_in(last) == (Backend.ACTORS, None)
