"""Writing signed anchors to a folder outside the data folder, day by day (F7)."""

from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tollgate.actors.kernel.atomic_file import create_file
from tollgate.actors.ledger.proof.anchor_file import (
    FORMAT,
    NO_FILE,
    AnchoredHead,
    AnchorLine,
    AnchorText,
    SignedAnchor,
    anchor_files,
    anchor_in,
    day_of,
    digest_of,
    file_name,
)
from tollgate.actors.ledger.proof.anchors import (
    Anchor,
    anchor_day,
    anchor_of,
    heads_at,
    last_settled_day,
)
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.errors import StorageError

# Whoever keeps the files need not be who runs Tollgate; there is nothing secret in them.
MODE = 0o644


async def export_anchors(
    database: Database, folder: Path, key: Ed25519PrivateKey, now_ms: int
) -> list[Path]:
    """The files of all days that are over and not in the folder yet; into an empty one, of the
    last day. Of several processes that do it at once, one writes each file.

    Raises StorageError when the books are no longer those of the newest file, or a day's anchor was
    another one before; StorageDown, BrokenAnchorFile, OSError.
    """
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    last = last_settled_day(now_ms)
    newest = max(anchor_files(folder), default=None)
    day = last if newest is None else day_of(newest) + timedelta(days=1)
    if newest is not None and day <= last:
        await _check_books(database, newest)
    made = []
    while day <= last:
        anchor = await anchor_day(database, day, now_ms)
        file = folder / file_name(anchor.day)
        text = await _text(database, anchor, newest, key)
        with suppress(FileExistsError):
            create_file(file, text, mode=MODE)
            made.append(file)
        newest, day = file, day + timedelta(days=1)
    return made


def _anchor_in(file: Path) -> SignedAnchor:
    """Of a whole file, whoever signed it."""
    return anchor_in(file, lambda _: True)


async def _check_books(database: Database, newest: Path) -> None:
    """Nothing is signed on top of what no longer holds."""
    signed = _anchor_in(newest)
    async with database.report() as connection:
        now = await anchor_of(connection, database.dialect, date.fromisoformat(signed.day))
    if (now.books, now.root) != (signed.books, signed.root):
        raise StorageError(
            f"{newest}: has the root {signed.root} over {signed.books} books, and the books now "
            f"give {now.root} over {now.books}: they were changed, and no later day is signed. Run "
            "`tollgate ledger verify`"
        )


async def _text(
    database: Database, anchor: Anchor, newest: Path | None, key: Ed25519PrivateKey
) -> bytes:
    text = AnchorText(key)
    since_ms = 0 if newest is None else _anchor_in(newest).at_ms
    previous = NO_FILE if newest is None else digest_of(newest)
    signed = SignedAnchor(FORMAT, anchor.day, anchor.at_ms, anchor.books, anchor.root, previous)
    lines = [text.line(AnchorLine(anchor=signed))]
    async with database.report() as connection:
        async for head in heads_at(connection, database.dialect, anchor.at_ms):
            if head.at_ms >= since_ms:
                line = AnchorLine(head=AnchoredHead(head.book, head.seq, head.hash))
                lines.append(text.line(line))
    return b"".join((*lines, text.end()))
