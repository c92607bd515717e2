"""Keys that are files: made once by the operator, readable by their owner alone.

    the operator's key    for calls that no app makes (part G, Operations)
    the key of anchors    signs exported anchors (F7), outside the data folder

The keys follow from no other secret: whoever may read the data folder and the database has neither,
and can sign nothing. Every node needs the same files. The public half of the key of anchors is
shown when it is made: a verifier needs no more.
"""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tollgate.actors.kernel.atomic_file import create_file
from tollgate.actors.ledger.proof.anchor_file import public_key_of
from tollgate.serve.payments.secrets.keys import has_checksum, new_app_key
from tollgate.serve.payments.secrets.master_secret import SecretFileError, read_secret


def load_operator_key(path: Path) -> str:
    """The key in the file. Raises SecretFileError."""
    make = f"make it with `tollgate payments make-operator-key {path}`"
    key = read_secret(path, f"there is no operator's key: {make}")
    if not has_checksum(key):
        raise SecretFileError(f"{path}: does not hold an operator's key: make another")
    return key


def make_operator_key(path: Path) -> None:
    """Write a new key to a new file. Raises SecretFileError."""
    _write_key(path, new_app_key())


def load_anchor_key(path: Path) -> Ed25519PrivateKey:
    """The key in the file. Raises SecretFileError."""
    make = f"make it with `tollgate ledger make-anchor-key {path}`"
    text = read_secret(path, f"there is no key for anchors: {make}")
    try:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(text))
    except ValueError:
        raise SecretFileError(f"{path}: does not hold a key for anchors: make another") from None


def make_anchor_key(path: Path) -> str:
    """Write a new key to a new file; the public key, hex. Raises SecretFileError."""
    key = Ed25519PrivateKey.generate()
    _write_key(path, key.private_bytes_raw().hex())
    return public_key_of(key)


def _write_key(path: Path, text: str) -> None:
    try:
        create_file(path, f"{text}\n".encode())
    except FileExistsError:
        raise SecretFileError(f"{path}: is there already: name a new file") from None
    except OSError as error:
        raise SecretFileError(f"{path}: {error.strerror}") from None
