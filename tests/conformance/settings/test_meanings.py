"""Each variable of the reference means here what the table says, in either spelling (B22)."""

from pathlib import Path

import pytest
import yaml

from tollgate.serve.commands.environment.meaning import Fate, Meaning, understood
from tollgate.serve.commands.environment.variable_file import Variable
from tollgate.serve.settings.rows import neutral_spelling, product_spelling

FOLDER = Path(__file__).parent
MEANINGS: dict[str, list[str]] = yaml.load(
    (FOLDER / "meanings.yaml").read_text(encoding="utf-8"), yaml.BaseLoader
)
TABLE = yaml.load((FOLDER / "settings_table.yaml").read_text(encoding="utf-8"), yaml.BaseLoader)


def test_every_variable_of_the_reference_is_here() -> None:
    assert MEANINGS.keys() == TABLE["reference"].keys() | TABLE["decided_otherwise"].keys()


@pytest.fixture(scope="module", params=[product_spelling, neutral_spelling])
def lines(request: pytest.FixtureRequest) -> dict[str, Meaning]:
    """What becomes of all of them in one file, in one spelling."""
    file = [
        Variable(number, request.param(name), value)
        for number, (name, (value, _)) in enumerate(MEANINGS.items(), start=1)
    ]
    return dict(zip(MEANINGS, understood(file).lines, strict=True))


@pytest.mark.parametrize("name", MEANINGS)
def test_a_variable_means_what_the_table_says(name: str, lines: dict[str, Meaning]) -> None:
    meaning = MEANINGS[name][1]
    assert lines[name].fate in (Fate.MEANS, Fate.IDLE)
    # (behind it: what the setting is for, or what it lacks)
    begins = (f"{meaning} (", f"{meaning}, without effect: ")
    assert lines[name].text.startswith(begins), lines[name].text
