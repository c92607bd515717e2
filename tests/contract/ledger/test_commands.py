"""`tollgate ledger`, as an operator types it: what is printed, where, and the exit code."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.ledger.storage import Storage, emptied, runner
from tests.support.ledger.stored_story import story, write
from tollgate.serve.commands.ledger.command import ledger

ENTRIES = sum(len(commit.entries) for commit in story())
MERCHANT = story()[-1].entries[0].book


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Books with a story in them."""
    url = emptied(f"sqlite:///{tmp_path}/ledger.sqlite")
    runner(url)(tell)
    return url


async def tell(storage: Storage) -> None:
    await write(await storage.store(), story())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def call(url: str, data: Path, *arguments: str) -> Result:
    environment = {"TOLLGATE_STORAGE_URL": url, "TOLLGATE_DATA": str(data)}
    return CliRunner().invoke(ledger, list(arguments), env=environment)


def change(url: str, statement: str) -> None:
    async def run(storage: Storage) -> None:
        await (await storage.writing()).run(statement)

    runner(url)(run)


@pytest.mark.parametrize("options", [[], ["--recent"]])
def test_sound_books_are_said_to_be_so(url: str, data: Path, options: list[str]) -> None:
    done = call(url, data, "verify", *options)
    assert (done.exit_code, done.stdout) == (0, f"sound: 3 books, {ENTRIES} entries\n")
    document = json.loads(call(url, data, "verify", "--json", *options).stdout)
    assert (document["sound"], document["books"], document["findings"]) == (True, 3, [])


@pytest.mark.parametrize("options", [[], ["--recent"]])
def test_books_that_were_changed_are_not_sound(url: str, data: Path, options: list[str]) -> None:
    change(url, f"UPDATE entries SET origin = '{{}}' WHERE seq = 3 AND book = '{MERCHANT}'")
    done = call(url, data, "verify", *options)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"entry 3 of book {MERCHANT}: its hash is")
    assert "NOT sound: " in done.stderr
    assert json.loads(call(url, data, "verify", "--json", *options).stdout)["sound"] is False


def test_the_trial_balance_adds_up_to_zero(url: str, data: Path) -> None:
    done = call(url, data, "trial-balance", "--json")
    assert done.exit_code == 0
    sums: dict[str, int] = {}
    for total in json.loads(done.stdout):
        sums[total["currency"]] = sums.get(total["currency"], 0) + total["amount"]
    assert set(sums) == {"DKK", "EUR", "JPY", "KWD"}
    assert not any(sums.values())
    assert "clearing" in call(url, data, "trial-balance").stdout
    change(url, "INSERT INTO postings VALUES ('none', 1, 0, 'merchant', 'EUR', 5)")
    stray = call(url, data, "trial-balance", "--json")
    assert (stray.exit_code, stray.stdout) == (1, done.stdout)
    assert "postings without an entry hold 5 EUR in the account merchant" in stray.stderr
    change(url, "UPDATE postings SET amount = amount + 7 WHERE leg = 0 AND currency = 'JPY'")
    done = call(url, data, "trial-balance")
    assert done.exit_code == 1
    assert "all accounts together hold 42 JPY, not 0 (M8)" in done.stderr


def test_lines_are_exported_for_spreadsheets_and_programs(
    url: str, data: Path, tmp_path: Path
) -> None:
    shop = story()[3].entries[0].book
    change(
        url,
        "UPDATE entities SET document = replace(document, 'January', '=HYPERLINK()') "
        "WHERE kind = 'line'",
    )
    done = call(url, data, "export", shop, "--format", "ndjson")
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["id"] for each in documents] == sorted(each["id"] for each in documents)
    file = tmp_path / "lines.csv"
    done = call(url, data, "export", shop, "--output", str(file))
    assert (done.exit_code, done.stdout) == (0, f"{file}: {len(documents)} lines\n")
    rows = list(csv.DictReader(file.open(newline="")))
    assert [row["id"] for row in rows] == [each["id"] for each in documents]
    assert [int(row["balance"]) for row in rows] == [each["balance"] for each in documents]
    funding = {each["fundingCurrency"] for each in documents}
    assert funding == {row["fundingCurrency"] for row in rows} == {"DKK"}
    assert "'=HYPERLINK()" in {row["description"] for row in rows}
    done = call(url, data, "export", shop, "--output", str(file))
    assert done.exit_code == 1
    assert "File exists" in done.stderr
    done = call(url, data, "export", "f" * 24)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"tollgate: {'f' * 24}: there is no such merchant\n"


@pytest.mark.parametrize("options", [[], ["--copy"]])
def test_a_backup_is_restored_elsewhere(
    url: str, data: Path, tmp_path: Path, options: list[str]
) -> None:
    target = str(tmp_path / "backup")
    done = call(url, data, "backup", target, *options)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(target)
    there = f"sqlite:///{tmp_path}/there.sqlite"
    done = call(there, data, "restore", target)
    assert done.exit_code == 0, done.stderr
    size = f"3 books, {ENTRIES} entries"
    assert done.stdout == f"restored {ENTRIES} entries of 3 books\nsound: {size}\n"
    done = call(there, data, "restore", target)
    assert done.exit_code == 1
    assert "is not empty" in done.stderr


def test_nothing_new_makes_no_segment(url: str, data: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "backup")
    assert f"{ENTRIES} entries of 3 books" in call(url, data, "backup", target).stdout
    done = call(url, data, "backup", target)
    assert (done.exit_code, done.stdout) == (
        0,
        f"{target}: nothing has come since the last segment\n",
    )


def test_a_restore_wants_tollgate_stopped(
    url: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tollgate.serve.commands.ledger.command.running", lambda _: object())
    done = call(url, data, "restore", str(tmp_path))
    assert done.exit_code == 1
    assert "stop it with `tollgate down`" in done.stderr


def test_what_is_no_backup_is_not_restored(url: str, data: Path, tmp_path: Path) -> None:
    there = f"sqlite:///{tmp_path}/there.sqlite"
    empty, text = tmp_path / "empty", tmp_path / "text"
    empty.mkdir()
    text.write_text("no database, and no backup" * 100)
    done = call(there, data, "restore", str(empty))
    assert (done.exit_code, "holds no segments of a journal" in done.stderr) == (1, True)
    done = call(there, data, "restore", str(text))
    assert (done.exit_code, "is not a database" in done.stderr) == (1, True)
    assert call(there, data, "restore", str(tmp_path / "none")).exit_code == 2


def test_a_restore_names_the_entry_that_was_changed(url: str, data: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    call(url, data, "backup", str(target))
    segment = target / "segment-000001.ndjson"
    lines = segment.read_text().splitlines(keepends=True)
    place = next(nr for nr, line in enumerate(lines) if MERCHANT in line and '"seq":2,' in line)
    lines[place] = lines[place].replace("192.0.2.1", "192.0.2.2")
    segment.write_text("".join(lines))
    done = call(f"sqlite:///{tmp_path}/there.sqlite", data, "restore", str(target))
    assert done.exit_code == 1
    assert done.stderr.startswith(f"tollgate: entry 2 of book {MERCHANT}: its hash is")


def test_an_anchor_is_printed_and_stays(url: str, data: Path) -> None:
    first = call(url, data, "anchor", "--day", "2026-01-01")
    assert first.exit_code == 0
    assert json.loads(first.stdout).keys() == {"day", "books", "root"}
    assert call(url, data, "anchor", "--day", "2026-01-01").stdout == first.stdout
    assert json.loads(call(url, data, "anchor").stdout)["books"] == 3
    done = call(url, data, "anchor", "--day", "9999-01-01")
    assert (done.exit_code, "the day is not over" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("sqlite:///{}/none.sqlite", "there is no such file: `tollgate up`"),
        ("postgresql://u:secret@/d?host={}", "cannot be opened"),
        ("mysql://u:secret@h/d", "TOLLGATE_STORAGE_URL: "),
    ],
)
def test_storage_that_cannot_be_used_is_one_line(
    data: Path, tmp_path: Path, storage: str, message: str
) -> None:
    done = call(storage.format(tmp_path), data, "verify")
    assert done.exit_code == 1
    assert message in done.stderr
    assert "secret" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


# Anchors kept elsewhere (what they find: test_exported_anchors.py, test_drill.py)


def test_a_key_for_anchors_is_made_once_and_for_its_owner(
    url: str, data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    made = call(url, data, "make-anchor-key", str(file))
    assert made.exit_code == 0
    assert f"set LEDGER_ANCHOR_KEY_FILE={file} and LEDGER_ANCHORS" in made.stdout
    public = made.stdout.splitlines()[-1].removeprefix("public key: ")
    assert len(public) == 64
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().strip() not in made.stdout
    again = call(url, data, "make-anchor-key", str(file))
    assert (again.exit_code, "is there already: name a new file" in again.stderr) == (1, True)


def test_the_settings_say_where_anchors_are_kept(url: str, data: Path, tmp_path: Path) -> None:
    key, kept = tmp_path / "key", tmp_path / "kept"
    call(url, data, "make-anchor-key", str(key))
    environment = {
        "TOLLGATE_STORAGE_URL": url,
        "TOLLGATE_DATA": str(data),
        "LEDGER_ANCHOR_KEY_FILE": str(key),
        "LEDGER_ANCHORS": str(kept),
    }

    def configured(*arguments: str) -> Result:
        return CliRunner().invoke(ledger, list(arguments), env=environment)

    (file,) = configured("anchor", "--to", str(kept)).stdout.splitlines()
    assert configured("anchor", "--to", str(kept)).stdout == f"{kept}: has every day\n"
    assert configured("verify").exit_code == 0
    Path(file).unlink()
    done = configured("verify")
    assert (done.exit_code, "holds no anchors" in done.stderr) == (1, True)
    assert configured("verify", "--recent").exit_code == 0


def test_what_does_not_go_together_is_refused(url: str, data: Path, tmp_path: Path) -> None:
    calls = {
        ("verify", "--recent", "--anchors", str(tmp_path)): (2, "leave --recent out"),
        ("verify", "--public-key", "ab"): (2, "--public-key goes with --anchors"),
        ("verify", "--since", "2026-01-01"): (2, "--since goes with --anchors"),
        ("verify", "--anchors", str(tmp_path)): (1, "whose signature counts?"),
        ("anchor", "--to", str(tmp_path)): (1, "LEDGER_ANCHOR_KEY_FILE is not set"),
        ("anchor", "--to", str(tmp_path), "--day", "2026-01-01"): (2, "leave --day out"),
    }
    for arguments, (code, message) in calls.items():
        done = call(url, data, *arguments)
        assert (done.exit_code, message in done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize(
    ("mode", "text", "message"),
    [
        (0o644, "00" * 32, "others may read it: chmod 600"),
        (0o600, "00" * 31, "does not hold a key for anchors: make another"),
        (0o600, None, "there is no key for anchors: make it with `tollgate ledger make-anchor-key"),
    ],
)
def test_a_key_that_cannot_be_used_is_one_line(
    url: str, data: Path, tmp_path: Path, mode: int, text: str | None, message: str
) -> None:
    key = tmp_path / "key"
    if text is not None:
        key.write_text(text)
        key.chmod(mode)
    environment = {"TOLLGATE_STORAGE_URL": url, "LEDGER_ANCHOR_KEY_FILE": str(key)}
    done = CliRunner().invoke(ledger, ["anchor", "--to", str(tmp_path / "kept")], env=environment)
    assert done.exit_code == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
