"""The key that signs exported anchors (F7): a file that is made once, outside the data folder.

It follows from no other secret, so whoever may read the data folder and the database can sign
nothing. Its public half is shown when it is made: a verifier needs no more.
"""

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tollgate.actors.kernel.atomic_file import create_file
from tollgate.actors.ledger.proof.anchor_file import public_key_of

KEY_BYTES = 32
_OTHERS = 0o077


class AnchorKeyError(Exception):
    """The file cannot be used: `str(error)` is one line for the operator."""


def load_anchor_key(path: Path) -> Ed25519PrivateKey:
    """The key in the file. Raises AnchorKeyError."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(2 * KEY_BYTES + 2)
    except FileNotFoundError:
        raise AnchorKeyError(
            f"{path}: there is no key for anchors: make it with `tollgate ledger make-anchor-key "
            f"{path}`"
        ) from None
    except OSError as error:
        raise AnchorKeyError(f"{path}: {error.strerror}") from None
    if mode & _OTHERS:
        raise AnchorKeyError(f"{path}: others may read it: chmod 600 {path}")
    try:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(text.decode("ascii").strip()))
    except ValueError:
        raise AnchorKeyError(f"{path}: does not hold a key for anchors: make another") from None


def make_anchor_key(path: Path) -> str:
    """Write a new key to a new file, readable by its owner alone; the public key, hex.

    Raises AnchorKeyError.
    """
    key = Ed25519PrivateKey.generate()
    try:
        create_file(path, f"{key.private_bytes_raw().hex()}\n".encode())
    except FileExistsError:
        raise AnchorKeyError(f"{path}: is there already: name a new file") from None
    except OSError as error:
        raise AnchorKeyError(f"{path}: {error.strerror}") from None
    return public_key_of(key)
