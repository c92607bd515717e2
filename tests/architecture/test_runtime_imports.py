"""What Tollgate imports is in its own lock: the packages of the tests are not on a machine that
runs it."""

import ast
import re
import sys
import sysconfig
from collections import defaultdict
from importlib.metadata import Distribution, packages_distributions
from pathlib import Path

import pytest

from tests.architecture.trees import nodes

ROOT = Path(__file__).parents[2]
OWN = {"tollgate", "scripts"}


def _name(written: str) -> str:
    return re.sub(r"[-_.]+", "-", written).lower()


def _locked() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.M))


def _imported(folder: str) -> set[str]:
    names: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in nodes(str(path.relative_to(ROOT)), path.read_text()):
            if isinstance(node, ast.Import):
                names.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition(".")[0])
    return names - OWN - set(sys.stdlib_module_names)


def test_every_import_is_of_a_package_in_the_runtime_lock() -> None:
    locked = _locked()
    packages = packages_distributions()
    missing = {
        name
        for name in _imported("actors") | _imported("serve")
        if not locked & {_name(each) for each in packages.get(name, ())}
    }
    assert missing == set()


def test_no_two_packages_bring_different_files_to_one_place() -> None:
    """Of two that do, whichever an installer takes last wins."""
    locked = _locked()
    contents: dict[str, set[str]] = defaultdict(set)
    for package in Distribution.discover(path=[sysconfig.get_path("purelib")]):
        for file in (package.files or ()) if _name(package.name) in locked else ():
            if file.hash is not None:  # (what is made while it is installed has none)
                contents[str(file)].add(file.hash.value)
    assert len(contents) > 5_000
    assert [file for file, hashes in contents.items() if len(hashes) > 1] == []


@pytest.mark.parametrize(
    ("module", "place"),
    [
        # A seventh of a node's imports, while tables are hardly ever upgraded.
        ("alembic", "actors/ledger/storage/migrations/"),
        # Half of the imports of `tollgate payments`, while one of its commands needs it.
        ("tollgate.serve.payments.imports", "serve/payments/"),
    ],
)
def test_what_few_starts_need_is_imported_by_them_alone(module: str, place: str) -> None:
    eager = {
        str(path.relative_to(ROOT))
        for folder in ("actors", "serve")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{module}.")
    }
    assert eager
    assert {path for path in eager if not path.startswith(place)} == set()
