"""`schema_valid` against the official schemas, as an independent implementation understands them:
over the cases of part E, our own, the public documents, and mutations of all of these.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
import msgspec
import yaml

from tests.support.catalog_auth.data import (
    official_schemas,
    own_cases,
    public_documents,
    specified_cases,
)
from tests.support.catalog_auth.mutations import EXCHANGE, OLD, mutated, schema
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.schema_validity.metaschema import is_schema, offences
from tollgate.serve.catalog_auth.schema_validity.official import is_schema_valid

DIFFERENCES = Path(__file__).with_name("known_differences.yaml")
MUTATIONS = 20_000
# So many of the mutations are of public documents, which are large.
OF_PUBLIC_ONES = 2_000
# And so many of documents made for the slips of single versions.
OF_RARE_ONES = 4_000
SCHEMAS = 20_000

Judge = Callable[[object], bool]
Repetitions = Callable[[int], int]
DRAFT_07 = "http://json-schema.org/draft-07/schema"


def judge_of(schema: object) -> Judge:
    return jsonschema_rs.validator_for(schema, validate_formats=False).is_valid


def judges() -> dict[Version, Judge]:
    return {version: judge_of(schema) for version, schema in official_schemas().items()}


def declaring(document: Any, version: Version, random: Random) -> Any:
    """The document, mostly with the identifier of this version alone."""
    if isinstance(document, dict) and random.random() < 0.97:
        document["stac_extensions"] = [version.identifier]
    return document


def ours(document: Any, version: Version, has_text: bool) -> bool:
    """The answer of this version's own rules, which has to be the same with the text and without:
    either way is taken by some of the documents."""
    raw = msgspec.json.encode(document) if has_text else None
    answer = is_schema_valid(locate(document, version=version, raw=raw), version)
    identifiers = document.get("stac_extensions") if isinstance(document, dict) else None
    return answer is True and isinstance(identifiers, list) and version.identifier in identifiers


def test_small_documents_and_their_mutations(repetitions: Repetitions) -> None:
    raws = [msgspec.json.encode(case["doc"]) for case in (*specified_cases(), *own_cases())]
    compare(raws, repetitions(MUTATIONS - OF_PUBLIC_ONES - OF_RARE_ONES), seed=1)


def test_what_only_single_versions_have_an_opinion_on(repetitions: Repetitions) -> None:
    raws = [msgspec.json.encode(document) for document in (*OLD, EXCHANGE)]
    compare(raws, repetitions(OF_RARE_ONES), seed=3)


def test_public_documents_and_their_mutations(repetitions: Repetitions) -> None:
    compare(list(public_documents().values()), repetitions(OF_PUBLIC_ONES), seed=2)


def compare(raws: list[bytes], count: int, seed: int) -> None:
    """All of the documents as they are and `count` mutations, each under one of the versions."""
    by_version = judges()
    taken = 0
    for number in range(len(raws) + count):
        random = Random(f"{seed}/{number}")
        document = msgspec.json.decode(raws[number % len(raws)])
        version = random.choice(list(Version))
        if number >= len(raws):
            document = mutated(document, random)
        document = declaring(document, version, random)
        said = by_version[version](document)
        taken += said
        if has_line_break_at_the_end(document):
            continue
        assert ours(document, version, random.random() < 0.8) is said, (
            f"mutation {number} of seed {seed}, v{version}: the official schema says {said}:\n"
            f"{msgspec.json.encode(document).decode()[:3000]}"
        )
    # A comparison in which all documents are alike would prove nothing.
    assert 0.1 < taken / (len(raws) + count) < 0.9


def has_line_break_at_the_end(value: object) -> bool:
    """Whether any name of the document is one of the known differences."""
    rest = [value]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            if any(name.endswith("\n") for name in value):
                return True
            rest += value.values()
        elif isinstance(value, list):
            rest += value
    return False


def test_the_metaschema_of_draft_07(repetitions: Repetitions) -> None:
    is_valid = judge_of({"$schema": f"{DRAFT_07}#", "$ref": DRAFT_07})
    taken = 0
    count = repetitions(SCHEMAS)
    for number in range(count):
        value = schema(Random(f"schema/{number}"))
        said = is_valid(value)
        taken += said
        assert is_schema(value) is said, f"schema {number}: {said}: {value}"
        assert list(offences(value)) == [] or not said
    assert 0.1 < taken / count < 0.9


def test_differences_are_those_that_are_known() -> None:
    by_version = judges()
    for difference in yaml.safe_load(DIFFERENCES.read_text()):
        document = difference["document"]
        assert is_schema_valid(locate(document)) is difference["ours"], difference["id"]
        assert has_line_break_at_the_end(document), difference["id"]
        said = by_version[Version.V1_1_0](document)
        assert said is difference["judge"], difference["id"]
