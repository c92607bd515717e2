"""A short name for the data folder, because the paths of unix sockets are bounded.

Ray, HAProxy and the gRPC front put sockets below the data folder, and what they append leaves it as
little as 25 characters. So they are handed a link in the system's folder for short-lived things.
"""

import os
from pathlib import Path

from tollgate.actors.kernel.hashing import digest

LINKS = Path("/tmp")


def socket_folder(data: str) -> Path:
    """A link to the data folder, made if it is not there yet. OSError when somebody else's file
    has its name."""
    folder = Path(data).resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    link = _link(folder)
    if not (link.is_symlink() and link.readlink() == folder):
        link.unlink(missing_ok=True)
        link.symlink_to(folder)
    return link


def remove_socket_folder(data: str) -> None:
    """Forget the link; the folder stays."""
    _link(Path(data).resolve()).unlink(missing_ok=True)


def _link(folder: Path) -> Path:
    return LINKS / f"tg-{digest(bytes(folder), str(os.getuid()).encode())[:8]}"
