"""`tollgate catalog`, as a publisher types it: files, folders, patterns, the standard input."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.catalog_auth.api import DANGLING, IDENTIFIER, Json, item
from tollgate.serve.cli import main


def run(*words: object, stdin: str = "") -> Result:
    return CliRunner().invoke(main, ["catalog", *map(str, words)], input=stdin)


def write(path: Path, value: object, indent: int | None = 2) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=indent) + "\n")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection that defines the scheme, an item that uses it, and files of other kinds."""
    collection = {
        "type": "Collection",
        "stac_version": "1.1.0",
        "id": "scenes",
        "stac_extensions": [IDENTIFIER],
        "auth:schemes": item()["properties"]["auth:schemes"],
        "links": [{"rel": "parent", "href": "../catalog.json"}],
        "assets": {"data": {"href": "https://x.example/a", "auth:refs": ["login"]}},
    }
    up = [{"rel": "collection", "href": "./collection%2Ejson"}]
    write(tmp_path / "scenes" / "collection.json", collection)
    write(tmp_path / "scenes" / "item.json", item(schemes={}, links=up))
    write(tmp_path / "catalog.json", {"type": "Catalog", "id": "c", "links": []})
    write(tmp_path / "package.json", {"name": "x"})
    (tmp_path / "notes.txt").write_text("x")
    return tmp_path


def test_a_good_file(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", item())
    result = run("validate", file)
    assert (result.exit_code, result.stdout) == (0, f"{file}: valid, schema valid\n")


def test_a_bad_file_has_its_findings_at_their_lines(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", DANGLING)
    result = run("validate", file)
    assert result.exit_code == 1
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if '"Login"' in text)
    assert f"{file}:{line}:9: error: R01 dangling-ref\n" in result.stdout
    assert "    why: " in result.stdout
    assert "    fix: " in result.stdout


def test_a_folder_is_judged_with_what_stands_above_in_it(folder: Path) -> None:
    result = run("validate", folder, "--format", "json")
    replies = {
        Path(each["file"]).name: each for each in map(json.loads, result.stdout.splitlines())
    }
    assert set(replies) == {"collection.json", "item.json", "catalog.json"}
    rules = [finding["rule"] for finding in replies["item.json"]["findings"]]
    assert "R03" in rules
    assert "R01" not in rules
    text = run("validate", folder)
    assert (
        text.stdout.splitlines()[-1]
        == "3 documents: 3 valid, 0 not valid (1 other file passed over)"
    )
    assert result.exit_code == text.exit_code == 0


def test_patterns_and_several_names(folder: Path) -> None:
    result = run("validate", f"{folder}/**/*.json", "--format", "json", "--profile", "schema")
    assert len(result.stdout.splitlines()) == 4
    named = run("validate", folder / "catalog.json", folder / "catalog.json", "--quiet")
    assert (named.exit_code, named.stdout) == (0, "")


@pytest.mark.parametrize("names", [[], ["-"]])
def test_a_dash_is_the_standard_input(names: list[str]) -> None:
    result = run("validate", *names, stdin=json.dumps(DANGLING))
    assert result.exit_code == 1
    assert "<stdin>:1:" in result.stdout


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":\n ]', ":2:2: is not JSON: expecting value"),
        ("", ":1:1: is not JSON: expecting value"),
    ],
)
def test_a_file_that_cannot_be_judged(tmp_path: Path, text: str, reason: str) -> None:
    bad, good = tmp_path / "bad.json", write(tmp_path / "good.json", item())
    bad.write_text(text)
    result = run("validate", good, bad)
    assert result.exit_code == 2
    assert result.stderr == f"{bad}{reason}\n"
    assert "2 documents: 1 valid, 0 not valid, 1 unusable" in result.stdout


@pytest.mark.parametrize("name", ["nowhere.json", "nowhere/*.json"])
def test_a_name_that_means_nothing(tmp_path: Path, name: str) -> None:
    result = run("validate", tmp_path / name)
    assert result.exit_code == 2
    assert str(tmp_path / name) in result.stderr


def test_an_empty_folder(tmp_path: Path) -> None:
    result = run("validate", tmp_path)
    assert result.exit_code == 2
    assert result.stderr == f"{tmp_path}: holds no files *.json or *.geojson\n"


def test_options_change_severities_and_profile(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", DANGLING)
    assert run("validate", file, "--rule", "R01=off").exit_code == 0
    assert run("validate", file, "--rule", "R01=off", "--fail-on", "warning").exit_code == 1
    assert run("validate", file, "--as", "v1.0.0", "--profile", "schema").exit_code == 0
    for wrong in (["--rule", "R99=off"], ["--rule", "R01"], ["--as", "v9.9.9"]):
        result = run("validate", file, *wrong)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1


def test_sarif_and_annotations(tmp_path: Path) -> None:
    file, bad = write(tmp_path / "a.json", DANGLING), tmp_path / "bad.json"
    bad.write_text("{")
    (run_,) = json.loads(run("validate", file, bad, "--format", "sarif").stdout)["runs"]
    assert {each["ruleId"] for each in run_["results"]} == {"R01", "R04", "R07"}
    assert run_["invocations"][0]["toolExecutionNotifications"]
    lines = run("validate", file, bad, "--format", "github").stdout.splitlines()
    kinds = {line.partition(" ")[0] for line in lines if line.startswith("::")}
    assert kinds == {"::error", "::warning", "::notice"}


TWICE = """{"type": "Catalog", "stac_version":"1.1.0", "id" : "c",
  "description": "",   "size": 1.0E1, "size": 1.50e0,
\t"stac_extensions": ["IDENTIFIER"],
  "auth:schemes": { "login": {"type": "http", "scheme": "Basic"} },
  "links": [{"rel": "item", "href": "./a.json", "auth:refs": ["login","login"]},
    {"rel":"item","href":"./b.json"}]
}

""".replace("IDENTIFIER", IDENTIFIER)
REPAIRED = TWICE.replace('"Basic"', '"basic"').replace('["login","login"]', '["login"]')


def test_a_fix_shows_what_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(TWICE)
    result = run("fix", file)
    assert result.exit_code == 0
    changed = [line[1:] for line in result.stdout.splitlines() if line[:1] in "+-"][2:]
    before, after = TWICE.splitlines(), REPAIRED.splitlines()
    assert sorted(changed) == sorted({*before} ^ {*after})
    assert file.read_text() == TWICE
    assert f"{file}: /size stands more than once" in result.stderr
    # What is true of the file only afterwards is not said of it as it is.
    told = f"{file}: 2 repairs to be made (with --write), then valid, schema valid"
    assert told in result.stderr
    assert f"{file}: 2 repairs made, now valid, schema valid" in run("fix", "-w", file).stderr
    assert "; nothing to repair\n" in run("fix", file).stderr


def test_a_fix_changes_nothing_else_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(TWICE)
    file.chmod(0o640)
    assert run("fix", "--write", file).exit_code == 0
    assert file.read_text() == REPAIRED
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [file]
    assert run("fix", "--write", file).stdout == ""


def test_a_fix_of_the_standard_input_goes_on() -> None:
    result = run("fix", stdin=TWICE)
    assert result.stdout == REPAIRED
    assert result.exit_code == 0


def test_what_a_repair_would_guess_is_asked(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", DANGLING, indent=2)
    before = file.read_text()
    assert run("fix", "--write", file).exit_code == 1
    assert file.read_text() == before
    assert run("fix", "--write", "--interactive", file, stdin="0\n").exit_code == 1
    assert file.read_text() == before
    result = run("fix", "--write", "--interactive", file, stdin="1\n")
    assert '  1  reference "login"' in result.stderr
    assert file.read_text() == before.replace('"Login"', '"login"')
    assert result.exit_code == 0
    assert run("fix", "--interactive", stdin=before).exit_code == 2


def test_a_fix_that_is_not_enough(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", item(["gone"]))
    assert run("fix", file).exit_code == 1
    assert run("fix", tmp_path / "nowhere").exit_code == 2


def test_ways_to_an_asset(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", item())
    for target in ("/assets/data", "https://data.example.com/scene.tif"):
        result = run("resolve", file, target)
        assert result.exit_code == 0
        assert "“login”: OpenID Connect" in result.stdout
        assert "curl" in result.stdout
    reply: Json = json.loads(run("resolve", file, "/assets/data", "--format", "json").stdout)
    missing = reply["alternatives"][0]["missing"]
    held = [word for name in missing for word in ("--have", name)]
    have = json.loads(run("resolve", file, "/assets/data", *held, "--format", "json").stdout)
    assert missing
    assert have["alternatives"][0]["missing"] == []
    assert len(json.loads(run("resolve", file, "--format", "json").stdout)) == 1


def test_there_is_no_way(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", DANGLING)
    result = run("resolve", file, "/assets/data")
    assert result.exit_code == 1
    assert "Meant is perhaps “login”." in result.stdout
    assert run("resolve", file, "/assets/other").exit_code == 2
    assert run("resolve", tmp_path / "nowhere").exit_code == 2


def test_rules_are_listed_and_explained() -> None:
    listed = run("rules")
    assert listed.exit_code == 0
    assert any(
        line.startswith("R01  error    dangling-ref ") for line in listed.stdout.splitlines()
    )
    one = run("rules", "r01")
    assert "A document that breaks it:" in one.stdout
    assert "error: R01 dangling-ref" in one.stdout
    assert json.loads(run("rules", "R01", "--format", "json").stdout)["id"] == "R01"
    assert len(json.loads(run("rules", "--format", "json").stdout)) == len(
        listed.stdout.splitlines()
    )
    assert run("rules", "R99").exit_code == 2
