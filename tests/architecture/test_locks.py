"""The lock files pin what pyproject.toml asks for, and nothing in them is from one machine."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(
    r"(?m)^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?P<hashes>(?: \\\n    --hash=\S+)*)$"
)


def asked_for(*where: str) -> list[Requirement]:
    """The requirements at these places of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines: list[str] = []
    for place in where:
        block = project
        for key in place.split("."):
            block = block[key]
        lines += block
    return [Requirement(line) for line in lines]


def pins(lock: str) -> dict[str, str]:
    """Version by package."""
    return {found["name"]: found["version"] for found in PIN.finditer(lock)}


def find_unlocked(requirements: list[Requirement], lock: str) -> Iterator[str]:
    """Requirements that no pin of the lock meets."""
    pinned = pins(lock)
    for requirement in requirements:
        version = pinned.get(canonicalize_name(requirement.name))
        if version is None or version not in requirement.specifier:
            yield f"{requirement} is locked at {version}: run scripts/lock"


def find_unlike_pins(lock: str) -> list[str]:
    """Lines of a lock that are not a pin with hashes, nor a comment."""
    rest = PIN.sub(lambda found: "" if found["hashes"] else found.group(), lock)
    return [line for line in rest.splitlines() if line and not line.lstrip().startswith("#")]


RUNTIME = ("project.dependencies", "dependency-groups.install")
LOCKS = {
    "requirements.lock": RUNTIME,
    "requirements-dev.lock": (*RUNTIME, "project.optional-dependencies.dev"),
    "requirements-envoy.lock": ("dependency-groups.envoy",),
}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_meets_what_is_asked_for(name: str) -> None:
    assert list(find_unlocked(asked_for(*LOCKS[name]), (ROOT / name).read_text())) == []


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_pins_with_hashes_alone(name: str) -> None:
    assert find_unlike_pins((ROOT / name).read_text()) == []


def test_the_tests_run_with_what_runs() -> None:
    runtime = pins((ROOT / "requirements.lock").read_text())
    dev = pins((ROOT / "requirements-dev.lock").read_text())
    assert len(runtime) > 50
    assert runtime.items() <= dev.items()


GOOD = "click==8.1.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\n    # via tollgate\n"


@pytest.mark.parametrize(
    ("requirement", "is_met"),
    [("click>=8.1", True), ("Click", True), ("click>=8.2", False), ("rich", False)],
)
def test_a_stale_lock_is_found(requirement: str, is_met: bool) -> None:
    assert (list(find_unlocked([Requirement(requirement)], GOOD)) == []) is is_met


@pytest.mark.parametrize("line", ["rich==13.0", "--index-url https://example.com", "-e ./here"])
def test_what_is_no_pin_is_found(line: str) -> None:
    assert find_unlike_pins(GOOD) == []
    assert find_unlike_pins(f"{GOOD}{line}\n") == [line]
