"""Processes of a test's own that have nothing to import: forks of one that did it once.

To import what a command or a verdict needs takes a second of processor time, to run it takes
milliseconds.
"""

import multiprocessing
from collections.abc import Callable
from typing import Any

# What the forks import when they are made; each imports what is not among it by itself.
PRELOADED = [
    "tests.support.catalog_auth.hostile_documents",
    "tollgate.serve.catalog_auth.document.positions",
    "tollgate.serve.catalog_auth.verdict.report",
    "tollgate.serve.cli",
    "tollgate.serve.commands.payments.command",
    "tollgate.serve.commands.up",
]
WITHIN_S = 60.0
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


def run_in_a_fork(target: Callable[..., None], *arguments: Any) -> int:
    """Calls a function of a module in a process of its own: its exit status."""
    process = _context.Process(target=target, args=arguments)
    process.start()
    process.join(WITHIN_S)
    status = process.exitcode
    if status is None:
        process.kill()
        raise AssertionError(f"{target.__name__}{arguments} goes on and on")
    process.close()
    return status
