"""The npm client `paylike` 2.0.2 against a running Tollgate: its own test file, as published.

Only its base URL is another one, and what the file expects to find was imported.
"""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.processes.tollgate import TollgateProcess

HERE = Path(__file__).parent / "paylike"
# Where scripts/test puts the client, from the lock file in HERE.
CLIENT = Path(__file__).parents[3] / ".cache/paylike"
TEST_FILE = CLIENT / "node_modules/paylike/test/index.js"
WITHIN_S = 120
# A saved card has a `created` (docs/payments.md, B); this file knows none.
NOT_ASKED_FOR = ["returned card"]
ASSERTIONS = 46
ASSERTION = re.compile(r"^(ok|not ok) \d+ (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def imported(tollgate: TollgateProcess) -> TollgateProcess:
    done = tollgate.command("payments", "import", str(HERE / "fixtures.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr
    return tollgate


def test_the_client_s_own_tests_pass(imported: TollgateProcess) -> None:
    assert TEST_FILE.exists(), f"no client at {CLIENT}: run scripts/test once"
    done = subprocess.run(
        ["node", "--require", HERE / "base_url.js", TEST_FILE],
        cwd=CLIENT,
        env={
            "PATH": imported.environment["PATH"],
            "PAYMENTS_URL": imported.url("PORT", "/payments"),
            "NODE_NO_WARNINGS": "1",
        },
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    results = ASSERTION.findall(done.stdout)
    failed = [name for result, name in results if result == "not ok"]
    assert failed == NOT_ASKED_FOR, done.stdout + done.stderr
    # All of them ran: the file ends with its own count.
    assert len(results) == ASSERTIONS, done.stdout
    assert f"# tests {ASSERTIONS}" in done.stdout
