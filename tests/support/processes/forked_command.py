"""`tollgate …` in a process of its own that has nothing to import: a fork of one that did it once.

To import what a command needs takes a second of processor time, to run it takes milliseconds.
"""

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess

from tollgate.serve.cli import main

# What commands import when they are called; each fork imports what is not among it by itself.
PRELOADED = [
    "tollgate.serve.cli",
    "tollgate.serve.commands.payments.command",
    "tollgate.serve.commands.up",
]
WITHIN_S = 60.0
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


def run_forked(
    words: tuple[str, ...], environment: Mapping[str, str], folder: Path
) -> CompletedProcess[str]:
    """Runs `tollgate <words>` in a folder, with this environment and no other, to the end."""
    with tempfile.TemporaryDirectory(prefix="tg-") as name:
        output, errors = Path(name) / "output", Path(name) / "errors"
        arguments = (words, dict(environment), folder, output, errors)
        process = _context.Process(target=_run, args=arguments)
        process.start()
        process.join(WITHIN_S)
        status = process.exitcode
        assert status is not None, f"{words} goes on and on"
        process.close()
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
