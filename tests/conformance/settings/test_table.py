"""The table of settings holds exactly what the documents name, with the defaults they give."""

from pathlib import Path

import pytest
import yaml

from tollgate.serve.settings.table import TABLE

# Every scalar is kept as text: defaults are compared as operators write them.
DOCUMENTS = yaml.load(
    Path(__file__).with_name("settings_table.yaml").read_text(encoding="utf-8"), yaml.BaseLoader
)
DEFAULTS = DOCUMENTS["reference"] | DOCUMENTS["decided_otherwise"] | DOCUMENTS["own"]
BY_NAME = {name: row for row in TABLE.values() for name in row.names}


@pytest.mark.parametrize(("name", "default"), DEFAULTS.items())
def test_a_default_is_the_documented_one(name: str, default: str) -> None:
    assert BY_NAME[name].default == default


@pytest.mark.parametrize("name", DOCUMENTS["requirements"])
def test_a_required_name_is_known(name: str) -> None:
    assert name in BY_NAME


def test_there_are_no_undocumented_settings() -> None:
    documented = {BY_NAME[name].name for name in (*DEFAULTS, *DOCUMENTS["requirements"])}
    assert documented == set(TABLE)
