"""The keys under which the vault seals cards: a file that is rotated (part H, The vault).

    one key on each line, hex, the newest first: it seals; all of them open

The file is made at the first start, readable by its owner alone, and every node needs the same one.
`tollgate payments rotate-vault-key` puts a new key on top; a token lives shorter than the older
keys stay. Processes look at the file again when it has changed, and for a key they do not know.
"""

import hmac
import secrets
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tollgate.actors.kernel.atomic_file import create_file, replace_file
from tollgate.serve.payments.secrets.master_secret import SecretFileError, read_secret

KEY_BYTES = 32
KEYS_MAX = 3
MARK_BYTES = 4


@final
class VaultKey:
    """A key; it does not show itself. `mark`: a few bytes by which tokens name it."""

    __slots__ = ("cipher", "mark")

    def __init__(self, key: bytes) -> None:
        assert len(key) == KEY_BYTES, "a key of the vault has 32 bytes"
        self.cipher = AESGCM(key)
        self.mark = hmac.digest(key, b"tollgate:mark of a vault key", "sha256")[:MARK_BYTES]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key stays in its process: hand over the path of its file")


@final
class VaultKeys:
    """The keys of a file. Raises SecretFileError when there are none to begin with."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _changed_at(path)
        self._keys = _load(path)

    @property
    def newest(self) -> VaultKey:
        """The one that seals."""
        return self._keys[0]

    def find(self, mark: bytes) -> VaultKey | None:
        """The key that tokens name so; of another process's newer one the file tells."""
        return self._known(mark) or (self._known(mark) if self.reload() else None)

    def reload(self) -> bool:
        """Reads the file if it has changed; True if it has. One that cannot be read changes
        nothing: the keys that were read are kept."""
        changed = _changed_at(self._path)
        if changed == self._seen:
            return False
        with suppress(SecretFileError):
            self._keys = _load(self._path)
            self._seen = changed
            return True
        return False

    def _known(self, mark: bytes) -> VaultKey | None:
        return next((key for key in self._keys if key.mark == mark), None)


def open_vault_keys(path: Path) -> VaultKeys:
    """The keys of the file, which is made when there is none. Raises SecretFileError."""
    try:
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                create_file(path, f"{secrets.token_hex(KEY_BYTES)}\n".encode())
    except OSError as error:
        raise SecretFileError(f"{path}: {error.strerror}") from None
    return VaultKeys(path)


def rotate_vault_key(path: Path) -> int:
    """Puts a new key on top; how many there are then. Raises SecretFileError."""
    lines = [secrets.token_hex(KEY_BYTES), *_lines(path)][:KEYS_MAX]
    try:
        replace_file(path, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise SecretFileError(f"{path}: {error.strerror}") from None
    return len(lines)


def _load(path: Path) -> tuple[VaultKey, ...]:
    return tuple(VaultKey(bytes.fromhex(line)) for line in _lines(path))


def _lines(path: Path) -> list[str]:
    lines = read_secret(path).split()
    if not 0 < len(lines) <= KEYS_MAX or not all(map(_is_key, lines)):
        raise SecretFileError(
            f"{path}: does not hold 1 to {KEYS_MAX} keys of the vault: restore it"
        )
    return lines


def _is_key(line: str) -> bool:
    try:
        return len(bytes.fromhex(line)) == KEY_BYTES
    except ValueError:
        return False


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
