"""Tollgate installed from its wheel: nothing of the checkout is on the path of its Python."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).parent / "uv"


def checkout_files() -> list[str]:
    """Every file that is tracked or about to be, relative to the root."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [
        path for path in sorted(set(listing.stdout.split("\0"))) if os.path.lexists(ROOT / path)
    ]


def copied_checkout(folder: Path) -> Path:
    """The files of the checkout in a folder of their own, links as links."""
    for path in filter(None, checkout_files()):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, target, follow_symlinks=False)
    return folder


def built_wheel(source: Path, folder: Path) -> Path:
    """The wheel of a checkout, made without the network."""
    # (what tells pip of the packages' place on this machine would be of no use)
    command = [sys.executable, "-m", "pip", "wheel", str(source), "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--quiet", "--wheel-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("tollgate-*.whl")
    return wheel


def installed(wheel: Path, folder: Path) -> Path:
    """The `bin` of an environment with this wheel, and with what this one has besides Tollgate.

    A path file names our packages; path files among them are not read, and with one of those the
    checkout would come in.
    """
    venv.create(folder, symlinks=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    install = [UV, "pip", "install", "--offline", "--no-deps", "--quiet"]
    subprocess.run([*install, "--python", str(folder / "bin/python"), str(wheel)], check=True)
    return folder / "bin"
