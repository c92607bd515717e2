"""Files that are whole at every moment, also after the power failed.

    replace_file    what has the name makes room           records, archives, documents
    create_file     nothing may have the name yet          secrets, keys, letters

The content is written to a new file beside it and made durable; then that one takes the name,
and the folder is made durable, for the name is an entry of the folder.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PRIVATE = 0o600


def replace_file(path: Path, content: bytes, *, mode: int = PRIVATE) -> None:
    """Puts a file with this content in place of whatever has the name. Raises OSError."""
    with _new_file(path, content, mode) as new:
        new.replace(path)


def create_file(path: Path, content: bytes, *, mode: int = PRIVATE) -> None:
    """Makes a new file; of several processes that try, one makes it.

    Raises FileExistsError when something has the name already, or another OSError.
    """
    with _new_file(path, content, mode) as new:
        os.link(new, path)


def make_durable(path: Path) -> None:
    """Waits until the disk has what was written to a file, or which names a folder holds."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _new_file(path: Path, content: bytes, mode: int) -> Iterator[Path]:
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.draft")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)  # (whatever the umask has left of it)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        yield new
        make_durable(path.parent)
    finally:
        new.unlink(missing_ok=True)
