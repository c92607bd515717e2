"""Catalog documents for tests: the project's own, and those that lie beside the checkout.

The specification's cases, the public documents and the official schemas are read from
`../shared/catalog_auth` when that is there; without it, the tests that use them have nothing to
look at and the project's own cases are what is left.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.examples.documents import collection, item

ROOT = Path(__file__).resolve().parents[3]
BESIDE = ROOT.parent / "shared/catalog_auth"
OWN_CASES = ROOT / "tests/conformance/catalog_auth/cases.yaml"


def specified_cases() -> list[dict[str, Any]]:
    """The cases of the specification, part E; none when they are not there."""
    file = BESIDE / "cases.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def public_documents() -> dict[str, bytes]:
    """Documents as found in public, by file name; none when they are not there."""
    return {path.name: path.read_bytes() for path in sorted(BESIDE.glob("real/*.json"))}


def official_schemas() -> dict[Version, Mapping[str, Any]]:
    """The official schema of each version; none when they are not there."""
    files = {
        Version.V1_0_0: "auth_v1.0.0.json",
        Version.V1_1_0: "auth_v1.1.0.json",
        Version.V1_2_0: "auth_v1.2.0_reconstructed.json",
    }
    paths = {version: BESIDE / "schemas" / name for version, name in files.items()}
    return {
        version: json.loads(path.read_text()) for version, path in paths.items() if path.exists()
    }


def own_cases() -> Iterator[dict[str, Any]]:
    """The project's cases, each with its whole document as `doc`."""
    for case in yaml.safe_load(OWN_CASES.read_text()):
        yield {**case, "doc": _document(case)}


def _document(case: dict[str, Any]) -> object:
    version = Version(case.get("version", "1.1.0"))
    if "item" in case:
        return {**item(version=version, **case["item"]), **case.get("with", {})}
    if "collection" in case:
        return {**collection(version=version, **case["collection"]), **case.get("with", {})}
    return case["document"]
