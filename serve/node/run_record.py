"""The record of a running Tollgate, for `tollgate status` and `tollgate down`."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tollgate.actors.kernel.atomic_file import replace_file

# The name of the address of the operator's payments calls.
OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run on this machine: its supervisor's pid, and the addresses of its doors by name."""

    pid: int
    started_s: float
    addresses: Mapping[str, str] = field(default_factory=dict)
    is_ready: bool = False
    is_stopping: bool = False


def record_path(data: str) -> Path:
    """The path of the record of the run with this data folder."""
    return Path(data) / "run.json"


def write_record(data: str, record: RunRecord) -> None:
    """Put the record in place of the one before."""
    path = record_path(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(asdict(record), indent=2).encode(), mode=0o644)


def read_record(data: str) -> RunRecord | None:
    """The record of the last run; None when there is none, as after an orderly end."""
    try:
        return RunRecord(**json.loads(record_path(data).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def running(data: str) -> RunRecord | None:
    """The record of the run that is alive; None when nothing runs with this data folder."""
    record = read_record(data)
    return record if record is not None and _is_alive(record.pid) else None


def remove_record(data: str) -> None:
    """Forget the run: it has ended."""
    record_path(data).unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # A pid may have been given to somebody else: ours runs the supervisor.
    try:
        return b"tollgate.serve.node.supervisor" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True
