"""A command that cannot read its settings says which, and why, in a line each."""

import pytest
from click.testing import CliRunner

from tollgate.serve.cli import main


@pytest.mark.parametrize("command", ["status", "down", "settings", "up"])
def test_every_bad_setting_is_named_in_a_line(command: str, tmp_path: object) -> None:
    bad = {"TOLLGATE_DATA": str(tmp_path), "PORT": "abc", "GRPC_PORT": "-1"}
    told = CliRunner().invoke(main, [command], env=bad)
    assert told.exit_code == 1
    assert "PORT" in told.stderr
    assert "'abc'" in told.stderr
    assert "GRPC_PORT" in told.stderr
    assert "Traceback" not in told.output
    assert told.exception is None or isinstance(told.exception, SystemExit)
