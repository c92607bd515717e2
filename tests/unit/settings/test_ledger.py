"""Where the ledger's books are, by the settings."""

import pytest

from tollgate.serve.settings import Settings, SettingsError, describe
from tollgate.serve.settings.ledger import LedgerSettings

POSTGRESQL = "postgresql://books:secret@db.example:5432/ledger"


def storage_url(value: str = "", data: str = "/srv/data") -> str:
    settings = Settings.from_environment({"TOLLGATE_STORAGE_URL": value, "TOLLGATE_DATA": data})
    return settings.ledger.storage_url(settings.process.data)


def test_the_books_are_in_the_data_folder_when_nothing_is_set() -> None:
    assert LedgerSettings().storage_url("/srv/data") == (
        "sqlite:////srv/data/payments/ledger.sqlite"
    )
    assert storage_url() == "sqlite:////srv/data/payments/ledger.sqlite"


@pytest.mark.parametrize("url", [POSTGRESQL, "sqlite:///books.sqlite", "sqlite:////srv/b.sqlite"])
def test_what_is_set_holds(url: str) -> None:
    assert storage_url(url) == url


@pytest.mark.parametrize(
    "url", ["mysql://u:secret@h/d", "books.sqlite", "sqlite://", "sqlite:///", "postgresql://"]
)
def test_other_storage_is_refused_without_showing_a_password(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        storage_url(url)
    (line,) = caught.value.errors
    assert line.startswith("TOLLGATE_STORAGE_URL: ")
    assert "is neither sqlite:///FILE nor postgresql://" in line
    assert "secret" not in line


def test_the_password_is_masked() -> None:
    shown = {item.name: item for item in describe({"TOLLGATE_STORAGE_URL": POSTGRESQL})}
    assert shown["TOLLGATE_STORAGE_URL"].value == "postgresql://*****@db.example:5432/ledger"


def test_an_sqlite_file_has_one_writer() -> None:
    with pytest.raises(SettingsError, match="LEDGER_SHARDS: 2 shards cannot share an SQLite file"):
        Settings.from_environment({"LEDGER_SHARDS": "2"})
    several = {"LEDGER_SHARDS": "2", "TOLLGATE_STORAGE_URL": POSTGRESQL}
    assert Settings.from_environment(several).ledger.shards == 2


def test_anchors_and_their_key_are_not_where_the_books_are() -> None:
    good = {"LEDGER_ANCHORS": "/mnt/anchors", "LEDGER_ANCHOR_KEY_FILE": "/etc/tollgate/anchor-key"}
    assert Settings.from_environment(good).ledger.anchors == "/mnt/anchors"
    with pytest.raises(SettingsError, match="LEDGER_ANCHOR_KEY_FILE: is not set, but LEDGER_ANCH"):
        Settings.from_environment({"LEDGER_ANCHORS": "/mnt/anchors"})
    for name, place in {
        "LEDGER_ANCHORS": "/srv/data/anchors",
        "LEDGER_ANCHOR_KEY_FILE": "/srv/data/payments/../key",
    }.items():
        with pytest.raises(SettingsError, match=f"{name}: is in the data folder, /srv/data: who"):
            Settings.from_environment(good | {name: place, "TOLLGATE_DATA": "/srv/data"})
