"""A short name for the data folder, because the paths of unix sockets are bounded.

Ray, HAProxy and the gRPC front put sockets below the data folder, and what they append leaves it as
little as 25 characters. So they are handed a link in the system's folder for short-lived things.

Programs are started through that link, so nobody else may exchange what it leads to: the link is
ours, the folder that it stands in is sticky, where the owner alone removes or renames what is
theirs, and the data folder is ours and written by nobody else. All of this is judged once the link
is there, and none of it can be undone by anybody but its owner and root.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from errno import EPERM
from pathlib import Path
from stat import S_ISVTX, S_IWGRP, S_IWOTH

from tollgate.actors.kernel.hashing import digest

LINKS = Path("/tmp")
ROOT = 0


def socket_folder(data: str) -> Path:
    """A link to the data folder, made if it is not there yet. OSError when it cannot be made, or
    when somebody else could change where it leads; `strerror` says what to do."""
    folder = Path(data).resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    link = _link(folder)
    with suppress(FileExistsError):
        link.symlink_to(folder)
    if problem := next(exposures(data), ""):
        raise PermissionError(EPERM, problem)
    if not (link.is_symlink() and link.readlink() == folder):
        link.unlink()
        link.symlink_to(folder)
    return link


def exposures(data: str) -> Iterator[str]:
    """The ways in which somebody else could put their own files in the place of what is below the
    data folder, one line each with what to do. What is not there yet has none."""
    folder = Path(data).resolve()
    link = _link(folder)
    if os.path.lexists(link) and link.lstat().st_uid != os.getuid():
        yield (
            f"{link}: somebody else (uid {link.lstat().st_uid}) has made this file, which leads to "
            f"the data folder: remove it as root, or set another TOLLGATE_DATA than {folder}"
        )
    if folder.is_dir():
        found = folder.stat()
        if found.st_uid not in (os.getuid(), ROOT):
            yield (
                f"{folder}: the data folder belongs to somebody else (uid {found.st_uid}): run "
                "Tollgate as that user, or set another TOLLGATE_DATA"
            )
        if found.st_mode & (S_IWGRP | S_IWOTH):
            yield f"{folder}: others can write to the data folder: chmod go-w it, or set another"
    for above in {*folder.parents, LINKS}:
        if above.is_dir() and above.stat().st_mode & (S_IWOTH | S_ISVTX) == S_IWOTH:
            yield f"{above}: everybody can rename what is in this folder: chmod o-w or +t it"


def private_folder(folder: Path) -> Path:
    """The folder, made if it is not there yet, which nobody else enters."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    return folder


def ray_folder(folder: Path) -> Path:
    """The folder of Ray's sessions, below a data folder that others may be let into.

    Ray opens it, and all in it, to everybody (0777) at each start. So it is inside of one that
    nobody else enters, and `ray` is a link to it.
    """
    inner = private_folder(folder / "private") / "ray"
    link = folder / "ray"
    if link.is_dir() and not link.is_symlink():  # (an earlier version's)
        link.rename(inner)
    inner.mkdir(mode=0o700, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(inner.relative_to(folder))
    return link


def remove_socket_folder(data: str) -> None:
    """Forget the link, if it is ours; the folder stays."""
    link = _link(Path(data).resolve())
    if os.path.lexists(link) and link.lstat().st_uid == os.getuid():
        link.unlink(missing_ok=True)


def _link(folder: Path) -> Path:
    return LINKS / f"tg-{digest(bytes(folder), str(os.getuid()).encode())[:8]}"
