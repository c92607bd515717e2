"""The files of this checkout, as the architecture tests read them."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _paths() -> list[str]:
    """Every file that is tracked or about to be, relative to the root; ignored ones are not."""
    listing = subprocess.run(
        # (the checkout may belong to another user, as in a container)
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return sorted({path for path in listing.stdout.split("\0") if (ROOT / path).is_file()})


@pytest.fixture(scope="session")
def texts() -> dict[str, str]:
    """The text files by their path from the root, with slashes."""
    contents = {path: (ROOT / path).read_bytes() for path in _paths()}
    return {path: data.decode() for path, data in contents.items() if b"\0" not in data}


@pytest.fixture(scope="session")
def modules(texts: dict[str, str]) -> dict[str, str]:
    """The Python files among them."""
    return {path: text for path, text in texts.items() if path.endswith(".py")}
