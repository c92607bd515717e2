"""The unit for systemd, held valid by systemd itself."""

import configparser
import subprocess
import sys
from pathlib import Path

from tollgate.serve.node.supervisor import READY_WITHIN_S, STOP_MARGIN_S
from tollgate.serve.settings import Settings

UNIT = Path(__file__).resolve().parents[3] / "configs/systemd/tollgate.service"
COMMAND = Path(sys.executable).parent / "tollgate"


def verified(folder: Path, text: str) -> str:
    """What systemd has to say about the unit; empty: nothing."""
    file = folder / UNIT.name
    file.write_text(text.replace("/opt/tollgate/bin/tollgate", str(COMMAND)))
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if UNIT.name in line]
    return "\n".join(lines)


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    assert verified(tmp_path, UNIT.read_text()) == ""


def test_systemd_finds_a_misspelt_line(tmp_path: Path) -> None:
    assert "KilMode" in verified(tmp_path, UNIT.read_text().replace("KillMode", "KilMode"))


def test_systemd_waits_longer_than_the_supervisor() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    assert int(service["TimeoutStartSec"]) > READY_WITHIN_S
    grace_s = Settings().process.drain_grace_s
    assert int(service["TimeoutStopSec"]) > grace_s + STOP_MARGIN_S
