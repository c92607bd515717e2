"""Documents made to do harm: read, judged and placed in bounded time and memory, or refused.

A process of its own gets a limit of memory and measures processor time, so that a busy machine
makes no difference.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.catalog_auth.hostile_documents import DOCUMENTS, UNREADABLE
from tollgate.serve.catalog_auth.document.decoding import UnreadableError, decode

ROOT = Path(__file__).parents[3]
MEGABYTE = 1_000_000
MEMORY_BYTES_MAX = 1_500 * MEGABYTE
# Of processor time, for a megabyte and all that is said of it; ten times what it takes.
CPU_S_PER_MEGABYTE_MAX = 4.0

PROGRAM = """
import json, resource, sys, time
from tollgate.serve.catalog_auth.document.decoding import UnreadableError
from tollgate.serve.catalog_auth.document.positions import positions
from tollgate.serve.catalog_auth.verdict.report import validate_raw
from tests.support.catalog_auth.hostile_documents import DOCUMENTS

limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
raw = DOCUMENTS[sys.argv[1]](int(sys.argv[3]))
begun = time.process_time()
try:
    verdict = validate_raw(raw)
    positions(raw, [finding.path for finding in verdict.findings])
    said = {"findings": len(verdict.findings), "rules": sorted({f.rule for f in verdict.findings})}
except UnreadableError as error:
    said = {"unreadable": str(error)}
print(json.dumps({"bytes": len(raw), "cpu_s": time.process_time() - begun, **said}))
"""


def judged_apart(name: str, size: int) -> dict[str, Any]:
    """What a process with little memory says of one of the documents."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name, str(MEMORY_BYTES_MAX), str(size)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(
    ("name", "megabytes"),
    [
        *((name, 1) for name in DOCUMENTS),
        pytest.param("many_holders", 10, marks=pytest.mark.repetition),
        pytest.param("schema_in_the_deep", 10, marks=pytest.mark.repetition),
    ],
)
def test_a_hostile_document_costs_bounded_time_and_memory(name: str, megabytes: int) -> None:
    answer = judged_apart(name, megabytes * MEGABYTE)
    assert "unreadable" not in answer, answer
    assert answer["cpu_s"] < CPU_S_PER_MEGABYTE_MAX * max(answer["bytes"] / MEGABYTE, 1), answer


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        decode(UNREADABLE[name])
    assert refused.value.line == 1
    assert refused.value.column >= 1
    assert refused.value.reason
