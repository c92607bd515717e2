"""SQL statements compiled once for all tests: each opens stores of its own, and to compile the
statements of one takes longer than most tests do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement

from tollgate.actors.ledger.storage.connections import statements


@contextmanager
def compiled_once() -> Iterator[None]:
    """Inside, a statement that is the same for SQLAlchemy, and brings the same values, is compiled
    once for a dialect."""
    compiled: dict[object, Any] = {}
    compile_anew = statements._compiled

    def compile_once(dialect: Dialect, statement: ClauseElement) -> Any:
        # Not public, and nothing public takes its place: to make it costs 40 µs a statement, to
        # `compare` with a known one 210, and to compile 260.
        key = statement._generate_cache_key()
        if key is None:
            return compile_anew(dialect, statement)
        known = (
            dialect.name,
            dialect.driver,
            key.key,
            *(repr(each.value) for each in key.bindparams),
        )
        if known not in compiled:
            compiled[known] = compile_anew(dialect, statement)
        return compiled[known]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statements, "_compiled", compile_once)
        yield
