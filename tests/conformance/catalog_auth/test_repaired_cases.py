"""The cases of part E, repaired and migrated, and the secrets that stand in some of them."""

import json
from itertools import product

from tests.support.catalog_auth.data import public_documents, specified_cases
from tests.support.catalog_auth.repairs import check_fixes, check_migration, check_repair
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.verdict.report import validate

# What stands in these cases and nobody may read in a finding.
SECRETS = {
    "s15": "u:p@",
    "s33": "Signature=00",
    "s35": "pk.abcdef",
    "s36": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
}


def test_the_cases_are_repaired() -> None:
    for case in specified_cases():
        check_fixes(case["doc"])
        check_repair(case["doc"])


def test_the_cases_are_migrated_or_refused() -> None:
    for case, to in product(specified_cases(), Version):
        check_migration(case["doc"], to)


def test_public_documents_are_migrated_or_refused() -> None:
    for raw in public_documents().values():
        check_migration(json.loads(raw), Version.V1_2_0)


def test_no_secret_of_a_case_is_told() -> None:
    cases = [case for case in specified_cases() if case["id"] in SECRETS]
    assert len(cases) == len(SECRETS)
    for case in cases:
        secret = SECRETS[case["id"]]
        assert secret in json.dumps(case["doc"])
        findings = validate(case["doc"]).findings
        assert any(finding.rule[0] in "XK" for finding in findings)
        for finding in findings:
            steps = [(step.value, step.path) for step in finding.fix or ()]
            assert secret not in f"{finding.message}{json.dumps(steps)}{pointer(finding.path)}"
