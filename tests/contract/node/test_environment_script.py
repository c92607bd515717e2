"""`scripts/environment` in a checkout of its own, with a real uv and no network."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[3]
UV = Path(sys.executable).parent / "uv"


def _installed(packages: Path, name: str) -> Path:
    """A package without content, installed."""
    folder = packages / f"{name}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    files = "".join(f"{folder.name}/{file},,\n" for file in ("METADATA", "RECORD", "INSTALLER"))
    (folder / "RECORD").write_text(files)
    (folder / "INSTALLER").write_text("uv")
    return folder


def test_installing_a_lock_takes_no_other_package_away(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/environment", tmp_path / "scripts")
    (tmp_path / "requirements.lock").write_text(f"locked==1.0 --hash=sha256:{'0' * 64}\n")
    venv.create(tmp_path / ".venv", symlinks=True)
    (tmp_path / ".venv/bin/uv").symlink_to(UV)
    (packages,) = (tmp_path / ".venv/lib").glob("python*/site-packages")
    kept = [_installed(packages, name) for name in ("locked", "besides")]

    done = subprocess.run(
        ["bash", "-c", "source scripts/environment; install_locked requirements.lock"],
        cwd=tmp_path,
        env={**os.environ, "UV_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert [folder.exists() for folder in kept] == [True, True]
