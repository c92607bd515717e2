"""The private folder of a front's inner socket: one for each process, gone with it.

A killed process leaves its folder behind; whoever makes one takes such folders away.
"""

import os
import re
import shutil
import socket
import tempfile
from pathlib import Path

SOCKET_NAME = "inner.sock"


def inner_socket_folder(socket_dir: Path) -> Path:
    """A new folder for this process and this user alone; those that nobody uses are removed."""
    for folder in socket_dir.glob("grpc-*"):
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)
    # mkdtemp makes it for this user alone (0700).
    return Path(tempfile.mkdtemp(prefix=f"grpc-{os.getpid()}-", dir=socket_dir))


def _is_abandoned(folder: Path) -> bool:
    """True when its process has ended, or (a pid may have been given away again) does not listen.

    A folder without a socket is one that is being made."""
    pid = re.match(r"grpc-(\d+)-", folder.name)
    if pid is None or not Path("/proc", pid[1]).exists():
        return True
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(folder / SOCKET_NAME))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
