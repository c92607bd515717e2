"""A series of exported anchors, read from a folder: one file a day, none left out (F7).

each file      is signed with a key that the reader knows, and names the file before it
no day         between the first and the last is missing, and nothing before the first
the last       is of the last day that is over, or of the day before: files take time to travel
the first      is of the day that the reader knows it from, or earlier. Tollgate signs into an empty
               folder as if nothing had been before, so only the reader can tell that a series was
               begun anew
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from tollgate.actors.ledger.proof.anchor_file import (
    NO_FILE,
    AnchoredHead,
    BrokenAnchorFile,
    SignedAnchor,
    anchor_files,
    anchor_in,
    anchor_lines,
    day_of,
    digest_of,
    file_name,
)
from tollgate.actors.ledger.proof.anchors import Anchor, end_of, last_settled_day

LATE_DAYS_MAX = 1
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class AnchorSeries:
    """`keys`: the public keys (hex) that may have signed; `now_ms`: when it is read; `since`: the
    day that it has at the latest, when that is known."""

    folder: Path
    keys: frozenset[str]
    now_ms: int
    since: date | None = None

    def read(self) -> tuple[list[Anchor], list[str]]:
        """The anchors that can be believed, by day, and what is wrong with the files."""
        believed: list[Anchor] = []
        findings: list[str] = []
        before: Path | None = None
        files = anchor_files(self.folder)
        if files:
            findings += self._beginning(files[0])
        for file in files:
            try:
                signed = self._signed(file)
            except (BrokenAnchorFile, OSError) as error:
                findings.append(f"{error}. Look for an untouched copy of it")
            else:
                believed.append(Anchor(signed.day, signed.at_ms, signed.books, signed.root))
                findings += self._predecessor(file, signed, before)
            if before is not None:
                findings += self._gap(day_of(before) + _DAY, day_of(file) - _DAY)
            before = file
        return believed, [*findings, *self._end(before)]

    def heads(self, anchor: Anchor) -> Iterator[AnchoredHead]:
        """Of the file of an anchor that was read."""
        for line in anchor_lines(self.folder / file_name(anchor.day), self.keys.__contains__):
            if line.head is not None:
                yield line.head

    def _signed(self, file: Path) -> SignedAnchor:
        signed = anchor_in(file, self.keys.__contains__)
        if file.name != file_name(signed.day) or signed.at_ms != end_of(day_of(file)):
            raise BrokenAnchorFile(f"{file}: is the anchor of {signed.day}, and was renamed")
        return signed

    def _beginning(self, first: Path) -> list[str]:
        if self.since is None or day_of(first) <= self.since:
            return []
        return [
            f"{self.folder}: begins with {first.name}, and has had {self.since}: it was begun anew "
            "in an emptied folder, or its first files were deleted. Look for them in another copy"
        ]

    def _predecessor(self, file: Path, signed: SignedAnchor, before: Path | None) -> list[str]:
        if before is None:
            is_first = signed.previous == NO_FILE
            return [] if is_first else [f"{file}: the anchors of the days before it are missing"]
        if day_of(before) + _DAY != day_of(file) or signed.previous == digest_of(before):
            return []
        return [f"{file}: was signed after another file of {day_of(before)} than {before.name}"]

    def _gap(self, first: date, last: date) -> list[str]:
        if first > last:
            return []
        return [
            f"{self.folder}: the anchors of {first} to {last} are missing: they were deleted, or "
            "not copied. Look for them in another copy"
        ]

    def _end(self, newest: Path | None) -> list[str]:
        if newest is None:
            return [f"{self.folder}: holds no anchors: it is another folder, or all were deleted"]
        last = last_settled_day(self.now_ms)
        if day_of(newest) >= last - LATE_DAYS_MAX * _DAY:
            return []
        return [
            f"{self.folder}: ends with {newest.name}, and the last day that is over is {last}: "
            "later ones were deleted, not copied, or not written (`tollgate ledger anchor --to` "
            "writes them)"
        ]
