"""Documents made to do harm: read, judged and placed in bounded time and memory, or refused.

A process of its own gets a limit of memory and measures processor time, so that a busy machine
makes no difference.
"""

import json
import resource
import time
from pathlib import Path

import pytest

from tests.support.catalog_auth.hostile_documents import DOCUMENTS, UNREADABLE
from tests.support.processes.forks import run_in_a_fork
from tollgate.serve.catalog_auth.document.decoding import UnreadableError, decode
from tollgate.serve.catalog_auth.document.positions import positions
from tollgate.serve.catalog_auth.verdict.report import validate_raw

MEGABYTE = 1_000_000
MEMORY_BYTES_MAX = 1_500 * MEGABYTE
# Of processor time, for a megabyte and all that is said of it; ten times what it takes.
CPU_S_PER_MEGABYTE_MAX = 4.0


def judge(name: str, size: int, said: Path) -> None:
    """In a process with little memory: what is said of one of the documents, and what it cost."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    raw = DOCUMENTS[name](size)
    begun_s = time.process_time()
    try:
        verdict = validate_raw(raw)
        positions(raw, [finding.path for finding in verdict.findings])
        answer = {}
    except UnreadableError as error:
        answer = {"unreadable": str(error)}
    cpu_s = time.process_time() - begun_s
    said.write_text(json.dumps({"bytes": len(raw), "cpu_s": cpu_s, **answer}))


@pytest.mark.parametrize(
    ("name", "megabytes"),
    [
        *((name, 1) for name in DOCUMENTS),
        pytest.param("many_holders", 10, marks=pytest.mark.repetition),
        pytest.param("schema_in_the_deep", 10, marks=pytest.mark.repetition),
    ],
)
def test_a_hostile_document_costs_bounded_time_and_memory(
    name: str, megabytes: int, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    assert run_in_a_fork(judge, name, megabytes * MEGABYTE, said) == 0
    answer = json.loads(said.read_text())
    assert "unreadable" not in answer, answer
    assert answer["cpu_s"] < CPU_S_PER_MEGABYTE_MAX * max(answer["bytes"] / MEGABYTE, 1), answer


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        decode(UNREADABLE[name])
    assert refused.value.line == 1
    assert refused.value.column >= 1
    assert refused.value.reason
