"""Catalog documents for tests: the cases, documents as found in public, and the official schemas.

All of it lies in `tests/conformance/catalog_auth` (its README says where it is from). What is not
there fails the test that asks for it: none passes for want of anything to look at.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.examples.documents import collection, item

FOLDER = Path(__file__).resolve().parents[2] / "conformance/catalog_auth"


def specified_cases() -> list[dict[str, Any]]:
    """The cases of docs/catalog-auth.md, part E."""
    cases = [json.loads(line) for line in (FOLDER / "specified_cases.jsonl").open()]
    assert cases
    return cases


def public_documents() -> dict[str, bytes]:
    """Documents as found in public, by file name."""
    documents = {
        path.name: path.read_bytes() for path in sorted(FOLDER.glob("public_documents/*.json"))
    }
    assert documents
    return documents


def official_schemas() -> dict[Version, Mapping[str, Any]]:
    """The official schema of each version."""
    return {
        version: json.loads((FOLDER / f"schemas/v{version}.json").read_text())
        for version in Version
    }


def own_cases() -> Iterator[dict[str, Any]]:
    """The project's cases, each with its whole document as `doc`."""
    cases = yaml.safe_load((FOLDER / "cases.yaml").read_text())
    assert cases
    for case in cases:
        yield {**case, "doc": _document(case)}


def _document(case: dict[str, Any]) -> object:
    version = Version(case.get("version", "1.1.0"))
    if "item" in case:
        return {**item(version=version, **case["item"]), **case.get("with", {})}
    if "collection" in case:
        return {**collection(version=version, **case["collection"]), **case.get("with", {})}
    return case["document"]
