"""The operator's key (part G, Operations): a file that is made once, for calls that no app makes.

It is nobody's but the operator's: it follows from no other secret, and whoever may read the
installation's secret does not have it. Every node needs the same file.
"""

import os
from pathlib import Path

from tollgate.actors.kernel.atomic_file import create_file
from tollgate.serve.payments.secrets.keys import has_checksum, new_app_key

_KEY_BYTES_MAX = 256
_OTHERS = 0o077


class OperatorKeyError(Exception):
    """The file cannot be used: `str(error)` is one line for the operator."""


def load_operator_key(path: Path) -> str:
    """The key in the file. Raises OperatorKeyError."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_KEY_BYTES_MAX)
    except FileNotFoundError:
        raise OperatorKeyError(
            f"{path}: there is no operator's key: make it with `tollgate payments "
            f"make-operator-key {path}`"
        ) from None
    except OSError as error:
        raise OperatorKeyError(f"{path}: {error.strerror}") from None
    if mode & _OTHERS:
        raise OperatorKeyError(f"{path}: others may read it: chmod 600 {path}")
    key = text.decode("latin-1").strip()
    if not has_checksum(key):
        raise OperatorKeyError(f"{path}: does not hold an operator's key: make another")
    return key


def make_operator_key(path: Path) -> None:
    """Write a new key to a new file, readable by its owner alone. Raises OperatorKeyError."""
    try:
        create_file(path, f"{new_app_key()}\n".encode())
    except FileExistsError:
        raise OperatorKeyError(f"{path}: is there already: name a new file") from None
    except OSError as error:
        raise OperatorKeyError(f"{path}: {error.strerror}") from None
