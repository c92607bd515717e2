"""The payments API in process, on tables of its own."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ledger.compiled_statements import compiled_once
from tests.support.payments.api import App, PaymentsApi
from tollgate.actors.ledger.storage.migration import upgrade


@pytest.fixture(scope="package", autouse=True)
def _compiled_once() -> Iterator[None]:
    with compiled_once():
        yield


@pytest.fixture(scope="session")
def empty_books() -> Iterator[Path]:
    """An SQLite file with empty tables."""
    with tempfile.TemporaryDirectory(prefix="tg-") as name:
        file = Path(name) / "books.db"
        asyncio.run(upgrade(f"sqlite:///{file}"))
        yield file


@pytest.fixture
def books_url(empty_books: Path, tmp_path: Path) -> str:
    """The url of tables of a test's own."""
    file = tmp_path / "books.db"
    shutil.copy(empty_books, file)
    return f"sqlite:///{file}"


@pytest.fixture
def api(books_url: str) -> Iterator[PaymentsApi]:
    api = PaymentsApi(books_url)
    yield api
    assert api.ended == []
    api.close()


@pytest.fixture
def shop(api: PaymentsApi) -> App:
    """An app."""
    return api.new_app("Coffee & Cake")


@pytest.fixture
def merchant(api: PaymentsApi, shop: App) -> dict[str, object]:
    """A test merchant of the shop, funded in DKK."""
    return api.new_merchant(shop)
