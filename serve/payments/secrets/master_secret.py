"""The one secret of an installation, from which all keys of its own follow.

It is a file that is made once, at the first start, readable by its owner alone. Every node needs
the same one: without it no app's key is known any more and no sealed text can be opened, so it goes
into the backup, apart from the database. The database holds its mark: with another file, or with
none where one belongs, nothing starts.
"""

import hmac
import os
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, Protocol, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tollgate.actors.kernel.atomic_file import create_file

SECRET_BYTES = 32
_FILE_BYTES_MAX = 256
_OTHERS = 0o077
SEALED_LENGTH_MAX = 16 * 1024
_NONCE_BYTES = 12
_MARK = "sealed1."
MARK = "payments secret"


class SecretFileError(Exception):
    """The file cannot be used: `str(error)` is one line for the operator."""


class SealBroken(Exception):  # noqa: N818 - a state of what came in
    """A text that was not sealed with this secret for this purpose, or was changed since."""


@final
class MasterSecret:
    """The secret; it does not show itself."""

    __slots__ = ("__secret",)

    def __init__(self, secret: bytes) -> None:
        assert len(secret) == SECRET_BYTES, "a secret has 32 bytes"
        self.__secret = secret

    def __repr__(self) -> str:
        return "MasterSecret(…)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret stays in its process: hand over the path of its file")

    def key_for(self, purpose: str) -> bytes:
        """A key of 32 bytes for one purpose; keys of different purposes tell nothing of each
        other."""
        return hmac.digest(self.__secret, f"tollgate:{purpose}".encode(), "sha256")

    @property
    def mark(self) -> str:
        """A short text by which the file is known again; it gives nothing of the secret away."""
        return self.key_for("mark of the file").hex()[:16]

    def sealer(self, purpose: str) -> "Sealer":
        return Sealer(self.key_for(f"seal:{purpose}"))


@final
class Sealer:
    """Encrypts texts that are stored and must be read again (AES-256-GCM)."""

    __slots__ = ("__cipher",)

    def __init__(self, key: bytes) -> None:
        self.__cipher = AESGCM(key)

    def seal(self, text: str, owner: str) -> str:
        """The text as only this sealer opens it, and only for the same owner."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        body = self.__cipher.encrypt(nonce, text.encode(), owner.encode())
        return _MARK + urlsafe_b64encode(nonce + body).decode()

    def open(self, sealed: str, owner: str) -> str:
        """The text. Raises SealBroken."""
        if not sealed.startswith(_MARK) or len(sealed) > SEALED_LENGTH_MAX:
            raise SealBroken("is not a sealed text")
        try:
            body = urlsafe_b64decode(sealed.removeprefix(_MARK))
            plain = self.__cipher.decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], owner.encode())
        except (ValueError, InvalidTag):
            raise SealBroken("cannot be opened with this secret") from None
        return plain.decode()


class Marks(Protocol):
    """The marks that the books keep."""

    async def mark(self, name: str) -> str | None: ...

    async def set_mark(self, name: str, mark: str) -> str: ...

    async def has_books(self) -> bool: ...


async def open_master_secret(path: Path, marks: Marks) -> MasterSecret:
    """The secret that belongs to the books; made, when there are none. Raises SecretFileError."""
    known = await marks.mark(MARK)
    if not path.exists() and (known is not None or await marks.has_books()):
        which = f" (its mark is {known})" if known else ""
        raise SecretFileError(
            f"{path}: is not there, and the books were written with the secret in it{which}: put "
            "the file back, from the backup or from another node"
        )
    secret = load_master_secret(path)
    holding = known or await marks.set_mark(MARK, secret.mark)
    if holding != secret.mark:
        raise SecretFileError(
            f"{path}: is not the file that the books were written with: its mark is {secret.mark}, "
            f"and theirs is {holding}: put that one back, from the backup or from another node"
        )
    return secret


def load_master_secret(path: Path) -> MasterSecret:
    """The secret of the file, which is made when there is none. Raises SecretFileError."""
    try:
        if not path.exists():
            _make(path)
    except OSError as error:
        raise SecretFileError(f"{path}: {error.strerror}") from None
    text = read_secret(path)
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise SecretFileError(f"{path}: does not hold {SECRET_BYTES} bytes in hex: restore it")
    return MasterSecret(secret)


def read_secret(path: Path, if_missing: str = "") -> str:
    """The text of a file that its owner alone may read. Raises SecretFileError; `if_missing`: its
    text when there is no file."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_FILE_BYTES_MAX)
    except FileNotFoundError as error:
        raise SecretFileError(f"{path}: {if_missing or error.strerror}") from None
    except OSError as error:
        raise SecretFileError(f"{path}: {error.strerror}") from None
    if mode & _OTHERS:
        raise SecretFileError(f"{path}: others may read it: chmod 600 {path}")
    return text.decode("latin-1").strip()


def _make(path: Path) -> None:
    """Makes the file; of several processes one makes it, and all read that one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        create_file(path, f"{secrets.token_hex(SECRET_BYTES)}\n".encode())
