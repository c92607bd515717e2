"""A shard of each test's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.ledger.actors import Desk, start_ledger


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path, end_after: Callable[[Any], Any]) -> Desk:
    ledger = start_ledger(tmp_path, request.node.name)
    end_after(ledger.handle)
    return Desk(ledger)
