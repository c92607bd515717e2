"""The folder of letters that wait for a mail server (mailer.py)."""

import secrets
from collections.abc import Iterator
from pathlib import Path

from tollgate.actors.kernel.atomic_file import create_file

LETTERS_MAX = 10_000
_SUFFIX = ".eml"


class MailError(Exception):
    """A letter went nowhere: `str(error)` is one line."""


class Outbox:
    """The folder of letters that wait."""

    def __init__(self, folder: Path, letters_max: int = LETTERS_MAX) -> None:
        self._folder = folder
        self._letters_max = letters_max

    def keep(self, content: bytes, now_s: float) -> Path:
        """A file of its own for a letter, whole or not at all. Raises MailError."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if sum(1 for _ in self.waiting()) >= self._letters_max:
                raise MailError(f"{self._folder}: {self._letters_max} letters wait already")
            path = self._folder / f"{int(now_s * 1000):013d}-{secrets.token_hex(8)}{_SUFFIX}"
            create_file(path, content)
        except OSError as error:
            raise MailError(f"{self._folder}: {error.strerror}") from None
        return path

    def waiting(self) -> Iterator[Path]:
        """The letters, in any order."""
        if self._folder.is_dir():
            yield from self._folder.glob(f"*{_SUFFIX}")


def outbox_folder(data: str) -> Path:
    """The folder of an installation; `data` is the value of TOLLGATE_DATA."""
    return Path(data) / "outbox"


def letters_waiting(data: str) -> int:
    """The number of letters that wait to be sent, for `tollgate status`."""
    return sum(1 for _ in Outbox(outbox_folder(data)).waiting())
