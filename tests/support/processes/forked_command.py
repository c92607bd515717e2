"""`tollgate …` in a process of its own, as a fork."""

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess

from tests.support.processes.forks import run_in_a_fork
from tollgate.serve.cli import main


def run_forked(
    words: tuple[str, ...], environment: Mapping[str, str], folder: Path
) -> CompletedProcess[str]:
    """Runs `tollgate <words>` in a folder, with this environment and no other, to the end."""
    with tempfile.TemporaryDirectory(prefix="tg-") as name:
        output, errors = Path(name) / "output", Path(name) / "errors"
        status = run_in_a_fork(_run, words, dict(environment), folder, output, errors)
        return CompletedProcess(words, status, output.read_text(), errors.read_text())


def _run(
    words: tuple[str, ...], environment: dict[str, str], folder: Path, output: Path, errors: Path
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, file in ((1, output), (2, errors)):
        os.dup2(os.open(file, os.O_CREAT | os.O_WRONLY), number)
    sys.argv = ["tollgate", *words]
    main()
