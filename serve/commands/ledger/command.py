"""`tollgate ledger`: the books themselves, for whoever operates them.

All commands work on the storage of TOLLGATE_STORAGE_URL, whether Tollgate runs or not; a restore
wants it stopped. The exit code is 0 when all is well, 1 when it is not, 2 when a call is wrong.
"""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import BinaryIO, NoReturn, TypeVar

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.json import decode

from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ledger.backup.archive import ArchiveError, LedgerArchive
from tollgate.actors.ledger.backup.restore import Restored
from tollgate.actors.ledger.backup.restore import restore_records as restore_records
from tollgate.actors.ledger.backup.segments import SegmentRecord
from tollgate.actors.ledger.backup.shipment import ship
from tollgate.actors.ledger.backup.sqlite_copy import copy_file
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.proof import anchors as anchoring
from tollgate.actors.ledger.proof.anchor_export import export_anchors
from tollgate.actors.ledger.proof.anchor_file import public_key_of
from tollgate.actors.ledger.proof.anchor_series import AnchorSeries
from tollgate.actors.ledger.proof.findings import VerificationReport, strayed, unbalanced
from tollgate.actors.ledger.proof.recent_verification import verify_recent
from tollgate.actors.ledger.proof.verification import verify_all as verify_all
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.migration import open_database, upgrade
from tollgate.actors.ledger.storage.reading.reader import SqlReadStore
from tollgate.actors.ledger.storage.store import ListFilter, PageBounds
from tollgate.serve.commands.ledger.reports import print_report, print_totals, progress_bar
from tollgate.serve.node.run_record import running
from tollgate.serve.payments.api.entity_cache import CachedMerchant
from tollgate.serve.payments.api.line_export import CSV_HEADER, csv_row, ndjson_row
from tollgate.serve.payments.secrets.key_files import load_anchor_key, make_anchor_key
from tollgate.serve.payments.secrets.master_secret import MARK, SecretFileError, load_master_secret
from tollgate.serve.payments.upkeep import EXPECTED
from tollgate.serve.settings import Settings, SettingsError, process_environment

LINES_PER_PAGE = 1_000
Result = TypeVar("Result")


@click.group()
def ledger() -> None:
    """The ledger's books: verify, export, back up, restore."""


@ledger.command()
@click.option("--recent", is_flag=True, help="Only what came since each book's last checkpoint.")
@click.option(
    "--anchors",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Signed anchors that were kept elsewhere; without it, those in LEDGER_ANCHORS.",
)
@click.option(
    "--public-key",
    "keys",
    multiple=True,
    metavar="HEX",
    help="Who may have signed them; without it, the key in LEDGER_ANCHOR_KEY_FILE.",
)
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DAY",
    help="A day that the anchors have: a series that begins later was begun anew.",
)
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
def verify(
    recent: bool,
    anchors: Path | None,
    keys: tuple[str, ...],
    since: datetime | None,
    is_json: bool,
) -> None:
    """Replay everything that was ever written, and compare.

    Chains of hashes, postings, balances, every table, stored replies, checkpoints and anchors. Only
    anchors that were kept elsewhere show that a book was written anew with hashes that fit, or that
    its end was cut off. May run while Tollgate does; needs as much temporary space as the tables
    have. Each finding is one line.
    """
    if recent and (anchors or keys or since):
        raise click.UsageError("--anchors goes with a full verification: leave --recent out")
    series = None if recent else _series(_settings(), anchors, keys)
    if since is not None:
        if series is None:
            raise click.UsageError("--since goes with --anchors, or with LEDGER_ANCHORS")
        series = replace(series, since=since.date())

    async def verified(database: Database) -> VerificationReport:
        with progress_bar("books" if recent else "entries") as step:
            if recent:
                return await verify_recent(database, step)
            return await verify_all(database, step, _now_ms(), series)

    report = _with_storage(verified)
    print_report(report, as_json=is_json)
    if not report.is_sound:
        raise click.exceptions.Exit(1)


@ledger.command("trial-balance")
@click.option("--json", "is_json", is_flag=True, help="Print a JSON list.")
def trial_balance(is_json: bool) -> None:
    """Sum up every account over all books, in minor units.

    Per currency, the sums add up to zero; when they do not, or when there are postings that belong
    to no entry, the exit code is 1.
    """
    totals = tuple(_with_storage(lambda database: SqlReadStore(database).trial_balance()))
    strays = _with_storage(lambda database: SqlReadStore(database).stray_balance())
    print_totals(totals, as_json=is_json)
    if faults := [*unbalanced(totals), *strayed(strays)]:
        _fail(*faults)


@ledger.command()
@click.argument("merchant")
@click.option("--format", "format_", type=click.Choice(["csv", "ndjson"]), default="csv")
@click.option("--output", type=click.Path(path_type=Path), help="A new file; without it, stdout.")
def export(merchant: str, format_: str, output: Path | None) -> None:
    """Write the lines of MERCHANT (an id), oldest first.

    As CSV it can be opened in a spreadsheet: no text in it is taken for a formula.
    """
    is_csv = format_ == "csv"

    async def exported(database: Database) -> int:
        reads = SqlReadStore(database)
        if (row := await reads.entity("merchant", EntityId(merchant))) is None:
            raise StorageError(f"{merchant}: there is no such merchant")
        funding = decode(row.document, type=CachedMerchant).currency
        with _output(output) as file, progress_bar("lines") as step:
            file.write(CSV_HEADER if is_csv else b"")
            count = 0
            async for document in _lines(reads, BookId(merchant)):
                file.write((csv_row if is_csv else ndjson_row)(document, funding))
                count += 1
                step(count, None)
        return count

    count = _with_storage(exported)
    if output is not None:
        click.echo(f"{output}: {count} lines")


@ledger.command()
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--copy", "is_copy", is_flag=True, help="Copy the SQLite file to TARGET, a new file.")
def backup(target: Path, is_copy: bool) -> None:
    """Back up to TARGET while Tollgate runs.

    TARGET is a folder: what came since the last backup becomes another segment of the journal in
    it, with hashes that chain the segments. Keep it on another disk; what was not backed up is lost
    with this one. With --copy, TARGET becomes a copy of the SQLite file, which can be used as it
    is (set TOLLGATE_STORAGE_URL to it) or restored from.
    """

    async def backed_up(database: Database) -> str:
        if is_copy:
            await copy_file(database, target)
            return f"{target}: copied"
        with progress_bar("entries") as step:
            shipment = await LedgerArchive(target).add(
                database, _now_ms(), lambda done: step(done, None)
            )
        if shipment is None:
            return f"{target}: nothing has come since the last segment"
        return f"{shipment.file}: {shipment.entries} entries of {shipment.books} books"

    click.echo(_with_storage(backed_up))


@ledger.command()
@click.argument("source", type=click.Path(exists=True, path_type=Path))
def restore(source: Path) -> None:
    """Restore SOURCE, a folder or a copy made by `backup`, into an empty storage; then verify it.

    Everything is replayed, so nothing is restored that was changed since it was written. Stop
    Tollgate before, set TOLLGATE_STORAGE_URL to where the books shall be, and put the file of their
    secret in its place: beside another one they are not restored.
    """
    settings = _settings()
    if running(settings.process.data) is not None:
        _fail("Tollgate is running: stop it with `tollgate down`, and restore then")
    secret = settings.payments.secret_path(settings.process.data)
    try:
        marks = {MARK: load_master_secret(secret).mark} if secret.exists() else {}
    except SecretFileError as error:
        _fail(str(error))

    async def restored(database: Database) -> tuple[Restored, VerificationReport]:
        async with _records(source) as records:
            with progress_bar("entries restored") as step:
                done = await restore_records(
                    database, records, lambda count: step(count, None), marks
                )
        with progress_bar("entries verified") as step:
            return done, await verify_all(database, step, _now_ms())

    done, report = _with_storage(restored, upgrades=True)
    click.echo(f"restored {done.entries} entries of {report.books} books")
    print_report(report)
    if not marks and MARK in done.marks:
        click.echo(
            f"{secret}: is not there: put the secret of these books in its place, whose mark is "
            f"{done.marks[MARK]}, before Tollgate starts",
            err=True,
        )
    if not report.is_sound:
        raise click.exceptions.Exit(1)


@ledger.command()
@click.option("--day", type=click.DateTime(["%Y-%m-%d"]), help="UTC; without it, the last one.")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write signed files of all days that are over and not in DIR yet.",
)
def anchor(day: datetime | None, folder: Path | None) -> None:
    """Print the anchor of a day: one hash over the heads of all books, as JSON.

    Keep it outside: with it, nobody can change an entry of that day or of earlier ones unnoticed.
    The same day always has the same anchor; when it has not, the exit code is 1.

    With --to, it is written for `verify --anchors`, signed with the key in LEDGER_ANCHOR_KEY_FILE.
    """
    now_ms = _now_ms()
    if folder is not None:
        if day is not None:
            raise click.UsageError("--to writes every day that is missing: leave --day out")
        key = _anchor_key(_settings())
        files = _with_storage(lambda database: export_anchors(database, folder, key, now_ms))
        click.echo("".join(f"{file}\n" for file in files) or f"{folder}: has every day\n", nl=False)
        return
    of: date = day.date() if day else anchoring.last_settled_day(now_ms)
    made = _with_storage(lambda database: anchoring.anchor_day(database, of, now_ms))
    click.echo(json.dumps({"day": made.day, "books": made.books, "root": made.root}))


@ledger.command("make-anchor-key")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
def make_key(file: Path) -> None:
    """Write a new key that signs anchors to FILE, and print its public key.

    Keep FILE outside the data folder, and write the public key down where you verify: with
    LEDGER_ANCHORS and LEDGER_ANCHOR_KEY_FILE set, Tollgate signs an anchor every day.
    """
    try:
        public = make_anchor_key(file)
    except SecretFileError as error:
        _fail(str(error))
    click.echo(f"{file}: made; set LEDGER_ANCHOR_KEY_FILE={file.absolute()} and LEDGER_ANCHORS")
    click.echo(f"public key: {public}")


# What the commands have in common


def _settings() -> Settings:
    try:
        return Settings.from_environment(process_environment())
    except SettingsError as error:
        _fail(*error.errors)


def _with_storage(
    work: Callable[[Database], Awaitable[Result]], *, upgrades: bool = False
) -> Result:
    """Does the work on the storage of the settings; what can be expected to fail is one line."""
    settings = _settings()
    url = settings.ledger.storage_url(settings.process.data)

    async def run() -> Result:
        if upgrades:
            await upgrade(url)
        database = await open_database(url)
        try:
            return await work(database)
        finally:
            await database.close()

    try:
        return asyncio.run(run())
    except EXPECTED as error:
        _fail(str(error))


def _series(settings: Settings, folder: Path | None, keys: tuple[str, ...]) -> AnchorSeries | None:
    """The anchors that were kept elsewhere, if the call or the settings say where."""
    own = settings.ledger.anchors
    if folder is None and not own:
        if keys:
            raise click.UsageError("--public-key goes with --anchors, or with LEDGER_ANCHORS")
        return None
    if not keys and not settings.ledger.anchor_key_file:
        _fail("whose signature counts? Name it with --public-key, or set LEDGER_ANCHOR_KEY_FILE")
    trusted = {key.lower() for key in keys} or {public_key_of(_anchor_key(settings))}
    return AnchorSeries(folder or Path(own), frozenset(trusted), _now_ms())


def _anchor_key(settings: Settings) -> Ed25519PrivateKey:
    path = settings.ledger.anchor_key_file
    if not path:
        _fail("LEDGER_ANCHOR_KEY_FILE is not set: `tollgate ledger make-anchor-key` makes a key")
    try:
        return load_anchor_key(Path(path))
    except SecretFileError as error:
        _fail(str(error))


@asynccontextmanager
async def _records(source: Path) -> AsyncIterator[AsyncIterator[SegmentRecord]]:
    """The records to restore: of a folder of segments, or of a copy of the tables."""
    if source.is_dir():
        archive = LedgerArchive(source)
        if not archive.segments():
            raise ArchiveError(f"{source}: holds no segments of a journal")
        async with aclosing(_each(archive.records())) as records:
            yield records
        return
    copy = await open_database(f"sqlite:///{source.absolute()}")
    try:
        async with aclosing(ship(copy, {}, lambda _: None)) as records:
            yield records
    finally:
        await copy.close()


async def _each(records: Iterator[SegmentRecord]) -> AsyncGenerator[SegmentRecord, None]:
    for record in records:
        yield record


async def _lines(reads: SqlReadStore, book: BookId) -> AsyncIterator[str]:
    """The documents of all lines of a book, oldest first."""
    last: EntityId | None = None
    while True:
        page = PageBounds(LINES_PER_PAGE, after=last, is_ascending=True)
        documents = await reads.page("line", book, page, ListFilter())
        for document in documents:
            yield document
        if len(documents) < LINES_PER_PAGE:
            return
        last = EntityId(json.loads(documents[-1])["id"])


@contextmanager
def _output(file: Path | None) -> Iterator[BinaryIO]:
    with nullcontext(sys.stdout.buffer) if file is None else file.open("xb") as output:
        yield output
        output.flush()


def _now_ms() -> int:
    return int(SystemClock().now_s() * 1000)


def _fail(*lines: str) -> NoReturn:
    for line in lines:
        click.echo(f"tollgate: {line}", err=True)
    raise click.exceptions.Exit(1)
