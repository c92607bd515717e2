"""Rule files on disk, in the two layouts of the reference (B20), and a copy of the last good ones.

    watch-root     base = root/subdirectory; of all files below it those that are called
                   `<app directory>.<rest>`, e.g. `config.basic.yaml`
    directory      base = root/subdirectory/app directory; all files below it, e.g. `basic.yaml`

A file is called by its path below the base, with `.` for every separator. Only `*.yaml` and `*.yml`
count. Symbolic links are followed. With dot files read, a mounted ConfigMap shows every file twice,
and the second one is a duplicate domain, as in the reference; with dot files ignored it is fine.
"""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tollgate.actors.kernel.atomic_file import replace_file
from tollgate.actors.kernel.hashing import digest
from tollgate.actors.ratelimit.rules.rule_file import RULE_FILE_BYTES_MAX, RuleFile, RuleFileError
from tollgate.actors.ratelimit.watching.in_force import GoodRules
from tollgate.serve.settings.service import RuleSettings

RULE_FILE_SUFFIXES = (".yaml", ".yml")
ENTRIES_MAX = 100_000  # files and directories looked at, of any kind
FILES_MAX = 10_000
FILES_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A rule file on disk: what operators call it, where it is and what it looked like."""

    name: str
    path: Path
    status: os.stat_result

    def read(self) -> RuleFile:
        """Its content. Raises RuleFileError: unreadable or too large."""
        try:
            with self.path.open("rb") as file:
                content = file.read(RULE_FILE_BYTES_MAX + 1)
        except OSError as error:
            raise _unreadable(self.name, error) from None
        if len(content) > RULE_FILE_BYTES_MAX:
            reason = f"the file is larger than {RULE_FILE_BYTES_MAX} bytes"
            raise RuleFileError(self.name, None, reason)
        return RuleFile(self.name, content)


@dataclass(frozen=True, slots=True)
class RuleDirectory:
    """A folder of rule files. Every call looks at the disk anew."""

    root: Path
    subdirectory: str
    app_directory: str
    watches_root: bool
    ignores_dot_files: bool

    @classmethod
    def of(cls, rules: RuleSettings) -> "RuleDirectory":
        """The directory that the settings name."""
        return cls(
            root=Path(rules.root),
            subdirectory=rules.subdirectory,
            app_directory=rules.app_directory,
            watches_root=rules.watches_root,
            ignores_dot_files=rules.ignores_dot_files,
        )

    @property
    def base(self) -> Path:
        """The directory whose files are named by their path below it."""
        below_root = self.root / self.subdirectory
        return below_root if self.watches_root else below_root / self.app_directory

    def find(self) -> list[FoundFile]:
        """The rule files, by name. Raises RuleFileError: no such directory, too many files."""
        found = sorted(self._walk(), key=lambda file: (file.name, file.path))
        if len(found) > FILES_MAX:
            raise RuleFileError(str(self.base), None, f"more than {FILES_MAX} rule files")
        if sum(file.status.st_size for file in found) > FILES_BYTES_MAX:
            reason = f"the rule files are larger than {FILES_BYTES_MAX} bytes together"
            raise RuleFileError(str(self.base), None, reason)
        return found

    def read(self) -> list[RuleFile]:
        """The rule files with their content, by name. Raises RuleFileError as `find`, `read`."""
        return [file.read() for file in self.find()]

    def signature(self) -> str:
        """Changes whenever a file does, or the place to which the root leads; reads no file.

        Raises RuleFileError as `find`.
        """
        parts = [str(Path(os.path.realpath(self.root))).encode("utf-8", "surrogatepass")]
        for file in self.find():
            status = file.status
            marks = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
            parts.append(file.name.encode())
            parts.append(repr((*marks, status.st_mode)).encode())
        return digest(*parts)

    def _walk(self) -> Iterator[FoundFile]:
        """Depth first; a link back to a directory that is being walked is not followed."""
        is_named = self.watches_root and self.app_directory
        prefix = f"{self.app_directory.replace('/', '.')}." if is_named else ""
        looked_at = 0
        waiting: list[tuple[Path, str, frozenset[tuple[int, int]]]] = [(self.base, "", frozenset())]
        while waiting:
            directory, name, above = waiting.pop()
            entries, identity = _listing(directory, name or str(self.base))
            if identity in above:
                continue
            looked_at += len(entries)
            if looked_at > ENTRIES_MAX:
                reason = f"more than {ENTRIES_MAX} files and directories"
                raise RuleFileError(str(self.base), None, reason)
            for entry in entries:
                entry_name = f"{name}.{entry.name}" if name else entry.name
                if self.ignores_dot_files and entry.name.startswith("."):
                    continue
                if _is_directory(entry):
                    if f"{entry_name}.".startswith(prefix) or prefix.startswith(f"{entry_name}."):
                        waiting.append((Path(entry), entry_name, above | {identity}))
                elif entry_name.startswith(prefix) and entry_name.endswith(RULE_FILE_SUFFIXES):
                    yield _found(entry, entry_name)


def _listing(directory: Path, name: str) -> tuple[list[os.DirEntry[str]], tuple[int, int]]:
    try:
        status = directory.stat()
        with os.scandir(directory) as entries:
            return list(islice(entries, ENTRIES_MAX + 1)), (status.st_dev, status.st_ino)
    except OSError as error:
        raise _unreadable(name, error) from None


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads round in circles: `_found` says so, if it is ours
        return False


def _found(entry: os.DirEntry[str], name: str) -> FoundFile:
    shown = os.fsencode(name).decode("utf-8", "replace")
    try:
        status = entry.stat()
    except OSError as error:
        raise _unreadable(shown, error) from None
    if not stat.S_ISREG(status.st_mode):
        raise RuleFileError(shown, None, "not a regular file")
    return FoundFile(shown, Path(entry), status)


def _unreadable(name: str, error: OSError) -> RuleFileError:
    return RuleFileError(name, None, f"cannot be read: {error.strerror}")


class FileArchive:
    """The last good rules on disk, for a watcher that is restarted: one JSON file, replaced as a
    whole. Names and texts survive byte for byte.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def put_away(self, good: GoodRules) -> None:
        """Keep these rules in place of those kept before. OSError when the disk refuses."""
        document = {
            "run": good.run,
            "number": good.number,
            "version": good.version,
            "files": [[file.name, file.content().decode("latin-1")] for file in good.files],
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._path, json.dumps(document).encode(), mode=0o644)

    def take_out(self) -> GoodRules | None:
        """The rules kept last; None when there are none, or none that can be read."""
        try:
            document = json.loads(self._path.read_text())
            files = tuple(
                RuleFile(str(name), str(text).encode("latin-1")) for name, text in document["files"]
            )
            run, number = str(document["run"]), int(document["number"])
            return GoodRules(run, number, files, str(document.get("version", "")))
        except (OSError, ValueError, KeyError, TypeError):
            return None
