"""What tests of the books' storage share."""

from collections.abc import Iterator

import pytest

from tests.support.ledger.compiled_statements import compiled_once


@pytest.fixture(scope="package", autouse=True)
def _compiled_once() -> Iterator[None]:
    with compiled_once():
        yield
