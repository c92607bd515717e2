"""Where a merchant's webhooks are."""

from typing import Any

import pytest


@pytest.fixture
def path(merchant: dict[str, Any]) -> str:
    return f"/merchants/{merchant['id']}/webhooks"
