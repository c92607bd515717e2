"""The folder of the journals: one for each partition, named by its number and how many there are.

    counters-0-of-2.journal            in force
    counters-0-of-2.journal.damaged    set aside: one that could not be read to its end
    .counters-0-of-2.fronts            the partition's roster, see `roster_file.py`
    .counters-0-of-2.journal.….draft   being written

When there are other numbers of partitions than before, a key belongs to another partition, which
finds it in the journals of before. Those are removed as soon as every partition that may have read
something there has it in a journal of its own.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from math import gcd
from pathlib import Path

from tollgate.actors.kernel.atomic_file import make_durable
from tollgate.actors.ratelimit.snapshots.frames import FrameReader
from tollgate.actors.ratelimit.snapshots.journal_file import DRAFT_SUFFIX
from tollgate.actors.ratelimit.snapshots.records import (
    TAKEN_OVER_MAX,
    JournalHeader,
    MalformedRecordError,
)
from tollgate.actors.ratelimit.snapshots.roster_file import ROSTER_SUFFIX, RosterFile

DAMAGED_SUFFIX = ".damaged"
_NAME = re.compile(r"counters-(\d{1,5})-of-(\d{1,5})\.journal")
_PRIVATE_FOLDER = 0o700


@dataclass(frozen=True, slots=True)
class JournalName:
    """Partition `partition` of `partitions`."""

    partition: int
    partitions: int

    @property
    def file_name(self) -> str:
        return f"counters-{self.partition}-of-{self.partitions}.journal"

    def may_share_keys_with(self, other: "JournalName") -> bool:
        """Whether some key belongs to both: keys go by the remainder of their hash."""
        divisor = gcd(self.partitions, other.partitions)
        return self.partition % divisor == other.partition % divisor


@dataclass(frozen=True, slots=True)
class JournalFolder:
    """Journals below `path`. All methods raise OSError."""

    path: Path

    def make(self) -> None:
        """Make the folder, if it is not there."""
        if not self.path.is_dir():
            self.path.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
            make_durable(self.path.parent)

    def place(self, name: JournalName) -> Path:
        return self.path / name.file_name

    def roster(self, name: JournalName, incarnation: int) -> RosterFile:
        """The roster of a partition, for one of its incarnations."""
        with suppress(OSError):  # (whoever writes it tells)
            self.make()
        own = f".counters-{name.partition}-of-{name.partitions}{ROSTER_SUFFIX}"
        return RosterFile(self.path / own, incarnation)

    def names(self) -> list[JournalName]:
        """The journals there are, at most TAKEN_OVER_MAX."""
        try:
            with os.scandir(self.path) as entries:
                found = [_NAME.fullmatch(entry.name) for entry in entries]
        except FileNotFoundError:
            return []
        names = (JournalName(int(match[1]), int(match[2])) for match in found if match)
        valid = (name for name in names if name.partition < name.partitions)
        return list(islice(valid, TAKEN_OVER_MAX))

    def header(self, name: JournalName) -> JournalHeader | None:
        """The header of a journal; None when there is none that can be read."""
        with suppress(FileNotFoundError), self.place(name).open("rb") as file:
            for frame in FrameReader(file):
                with suppress(MalformedRecordError):
                    return JournalHeader.of(frame)
                break
        return None

    def written_s(self, name: JournalName) -> float:
        """The time of day at which somebody last wrote to a journal."""
        return self.place(name).stat().st_mtime

    def keep_copy(self, name: JournalName) -> Path:
        """Have a damaged journal's content stay when another takes its place; where it is."""
        place = self.place(name)
        aside = place.with_name(place.name + DAMAGED_SUFFIX)
        aside.unlink(missing_ok=True)
        os.link(place, aside)
        return aside

    def set_aside(self, name: JournalName) -> Path:
        """Take a journal out of force; where it is."""
        place = self.place(name)
        aside = place.with_name(place.name + DAMAGED_SUFFIX)
        place.replace(aside)
        return aside

    def remove_drafts(self, name: JournalName) -> None:
        """Remove what writers of this journal that were killed have left."""
        for draft in self.path.glob(f".{name.file_name}.*{DRAFT_SUFFIX}"):
            draft.unlink(missing_ok=True)

    def remove_taken_over(self, own: JournalHeader) -> None:
        """Remove the journals of other numbers of partitions that nobody needs any more."""
        for name in self.names():
            if name.partitions == own.partitions:
                continue
            header = self.header(name)
            if header is None or header.id not in own.taken_over:
                continue
            if all(header.id in ids for ids in self._taken_over(name, own.partitions)):
                self.place(name).unlink(missing_ok=True)

    def _taken_over(self, name: JournalName, partitions: int) -> Iterator[tuple[bytes, ...]]:
        """For each of so many partitions that may need a journal: what its own one holds."""
        for partition in range(partitions):
            heir = JournalName(partition, partitions)
            if heir.may_share_keys_with(name):
                header = self.header(heir)
                yield () if header is None else header.taken_over
