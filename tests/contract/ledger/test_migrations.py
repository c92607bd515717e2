"""The tables as revisions make them: the ones that the code was written for, on both storages."""

import asyncio
import json
import shutil
import stat
from importlib import import_module
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Update, create_engine, func, insert, inspect, select, update

from tests.support.ledger.books import NOW_MS
from tests.support.ledger.storage import Book, Run, Storage, runner
from tests.support.ledger.stored_story import story, webhooks_of_before, write
from tollgate.actors.ledger.proof.verification import verify_all
from tollgate.actors.ledger.storage import migration as migrating
from tollgate.actors.ledger.storage import migrations
from tollgate.actors.ledger.storage.connections import location as addresses
from tollgate.actors.ledger.storage.connections.location import check_cluster, storage_url
from tollgate.actors.ledger.storage.deliveries import tables as delivery_tables
from tollgate.actors.ledger.storage.deliveries.store import SqlDeliveryStore
from tollgate.actors.ledger.storage.deliveries.tables import cursors
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.migration import open_database, upgrade
from tollgate.actors.ledger.storage.tables import entities
from tollgate.actors.ledger.storage.writer import SqlJournalStore

METADATA = delivery_tables.metadata


@pytest.fixture
def run(ledger_url: str) -> Run:
    return runner(ledger_url)


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, METADATA))


def test_the_revisions_make_what_the_metadata_says(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        database = await storage.database()
        async with database.writer.connect() as connection:
            assert await connection.run_sync(differences) == []

    run(scenario)


def test_on_sqlite_they_make_it_to_the_letter(tmp_path: Path) -> None:
    """Conditions of indexes, collations and kinds of tables, which the comparison leaves out."""
    asyncio.run(upgrade(f"sqlite:///{tmp_path}/migrated"))
    migrated = create_engine(f"sqlite:///{tmp_path}/migrated")
    created = create_engine(f"sqlite:///{tmp_path}/created")
    METADATA.create_all(created)

    def definitions(name: str) -> dict[str, str]:
        engine = migrated if name == "migrated" else created
        with engine.connect() as connection:
            rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master").all()
        engine.dispose()
        return {name: " ".join(sql.split()) for name, sql in rows if sql}

    assert definitions("migrated").pop("alembic_version")
    expected = definitions("created")
    assert {k: v for k, v in definitions("migrated").items() if k in expected} == expected
    assert definitions("migrated").keys() - expected.keys() == {"alembic_version"}


def test_on_postgresql_ids_are_compared_by_their_bytes(postgresql_url: str) -> None:
    async def collations() -> set[tuple[str, str]]:
        await upgrade(postgresql_url)
        database = await open_database(postgresql_url)
        async with database.reading() as connection:
            rows = await connection.fetch(
                "SELECT table_name, column_name FROM information_schema.columns "
                "WHERE table_schema = 'public' AND collation_name = 'C'"
            )
        await database.close()
        return set(rows)

    words = {
        (table.name, column.name)
        for table in METADATA.tables.values()
        for column in table.columns
        if column.name in ("id", "book", "app", "key", "digest", "operation", "shard", "webhook")
        and (table.name, column.name) != ("entries", "operation")
    }
    assert words <= asyncio.run(collations())


def test_upgrading_again_keeps_what_is_there(ledger_url: str, run: Run) -> None:
    async def write(storage: Storage) -> None:
        store, book = await storage.store(), Book()
        await store.append(book.commit(entities=(book.merchant(),)))

    async def read(storage: Storage) -> None:
        assert len((await storage.tables())["entries"]) == 1

    run(write)
    asyncio.run(upgrade(ledger_url))
    run(read)


def test_rates_become_fractions_where_merchants_were_before(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the letter what the books write now, so that verification finds nothing changed."""
    revision = import_module(f"{migrations.__name__}.versions.0005_rate_fraction")
    monkeypatch.setattr(revision, "MERCHANTS_PER_PIECE", 1)

    def upgrade_tables(connection: Connection) -> None:
        with Operations.context(MigrationContext.configure(connection)):
            revision.upgrade()

    async def scenario(storage: Storage) -> None:
        database = await storage.database()
        await write(await storage.store(), story())
        async with database.writer.begin() as connection:
            # (a text that looks like the rate is none)
            texts = await connection.execute(
                changed('"email":"', '"email":"\\"pricing\\":{\\"rate\\":7')
            )
            assert texts.rowcount == 2
        expected = await storage.tables()
        async with database.writer.begin() as connection:
            for rate, parts in (("0.0145", "14500"), ("0.009", "9000")):
                earlier = changed(f'"rate":{rate},', f'"rate":{parts},')
                assert (await connection.execute(earlier)).rowcount == 1
        assert await storage.tables() != expected
        async with database.writer.begin() as connection:
            await connection.run_sync(upgrade_tables)
        assert await storage.tables() == expected

    def changed(old: str, new: str) -> Update:
        document = entities.c.document
        has_it = (entities.c.kind == "merchant", document.contains(old))
        return update(entities).where(*has_it).values(document=func.replace(document, old, new))

    run(scenario)


def test_webhooks_of_before_they_could_be_disabled_are_enabled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the revision before, with a receiver that had failed: all of it is as the books
    would write it now, and what waits goes out at once."""
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    before = tmp_path / "migrations"
    shutil.copytree(
        migrating.MIGRATIONS, before, ignore=shutil.ignore_patterns("000[678]*", "__pycache__")
    )

    async def write_before() -> None:
        await upgrade(url)
        store = SqlJournalStore(database := await open_database(url))
        await store.take_over("shard-0", "an incarnation")
        await write(store, webhooks_of_before())
        async with database.writer.begin() as connection:
            document = entities.c.document
            stripped = func.replace(document, ',"enabled":true', "")
            of_webhooks = update(entities).where(entities.c.kind == "webhook")
            assert (await connection.execute(of_webhooks.values(document=stripped))).rowcount == 1
            webhook = (await connection.execute(select(entities.c.id).where(of_kind))).scalar_one()
            failed = {"cursor": "", "failures": 9, "failing_since_ms": 1, "next_attempt_ms": 2**50}
            leased = {"lease": "", "leased_until_ms": 0}
            await connection.execute(insert(cursors).values(webhook=webhook, **failed, **leased))
        await store.close()
        await database.close()

    async def read_now() -> None:
        await upgrade(url)
        database = await open_database(url)
        async with database.reading() as connection:
            documents = await connection.fetch(
                "SELECT document FROM entities WHERE kind = 'webhook'"
            )
        assert [json.loads(document)["enabled"] for (document,) in documents] == [True]
        assert (await verify_all(database, lambda *_: None, NOW_MS)).findings == ()
        (batch,) = await SqlDeliveryStore(database).claim(NOW_MS, 1_000, 10, 10)
        assert (batch.url, batch.secret) == ("https://example.com/hook", "sealed again")
        await database.close()

    of_kind = entities.c.kind == "webhook"
    with monkeypatch.context() as patched:
        patched.setattr(migrating, "MIGRATIONS", before)
        assert migrating.newest_revision() == "0005"
        asyncio.run(write_before())
    asyncio.run(read_now())


def test_webhooks_are_enabled_on_both_storages(run: Run) -> None:
    revision = import_module(f"{migrations.__name__}.versions.0006_retries")

    def enable(connection: Connection) -> None:
        with Operations.context(MigrationContext.configure(connection)):
            revision.enable_webhooks()

    async def scenario(storage: Storage) -> None:
        await write(await storage.store(), webhooks_of_before())
        expected = await storage.tables()
        database = await storage.database()
        async with database.writer.begin() as connection:
            stripped = func.replace(entities.c.document, ',"enabled":true', "")
            await connection.execute(update(entities).values(document=stripped))
        assert await storage.tables() != expected
        async with database.writer.begin() as connection:
            await connection.run_sync(enable)
        assert await storage.tables() == expected

    run(scenario)


def test_two_may_upgrade_at_the_same_time(ledger_url: str) -> None:
    async def together() -> None:
        await asyncio.gather(*(upgrade(ledger_url) for _ in range(3)))

    asyncio.run(together())


def test_files_are_named_for_their_revisions_in_their_order() -> None:
    known = list(ScriptDirectory(str(migrating.MIGRATIONS)).walk_revisions())
    names = sorted(file.stem for file in (migrating.MIGRATIONS / "versions").glob("[0-9]*.py"))
    assert [each.revision for each in reversed(known)] == [name.split("_")[0] for name in names]
    assert migrating.newest_revision() == known[0].revision


def test_tables_of_another_version_are_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    asyncio.run(upgrade(url))
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    with pytest.raises(StorageError, match=r"the tables are of version 9999, and this Tollgate"):
        asyncio.run(open_database(url))
    with pytest.raises(StorageError, match=r"9999.*written by a newer Tollgate\?"):
        asyncio.run(upgrade(url))


def test_half_an_upgrade_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are changed in one transaction, the stamp of the version in it."""
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    broken = tmp_path / "migrations"
    (broken / "versions").mkdir(parents=True)
    (broken / "env.py").write_text((migrating.MIGRATIONS / "env.py").read_text())
    (broken / "versions" / "1.py").write_text(
        "from alembic import op\n"
        "revision, down_revision = '1', None\n"
        "def upgrade():\n"
        "    op.execute('CREATE TABLE one (x)')\n"
        "    op.execute('CREATE TABLE one (x)')\n"
    )
    monkeypatch.setattr(migrating, "MIGRATIONS", broken)
    with pytest.raises(StorageError, match="cannot be upgraded: table one already exists"):
        asyncio.run(upgrade(url))
    engine = create_engine(url)
    assert inspect(engine).get_table_names() == []
    engine.dispose()


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "payments" / "ledger.sqlite"
    asyncio.run(upgrade(f"sqlite:///{file}"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"none/there/ledger\.sqlite: cannot be made: No such"):
        asyncio.run(upgrade(f"sqlite:///{tmp_path}/none/there/ledger.sqlite"))


# Addresses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sqlite:///books.sqlite", "sqlite+aiosqlite:///books.sqlite"),
        ("sqlite+aiosqlite:////srv/b", "sqlite+aiosqlite:////srv/b"),
        (
            "postgresql://u@h:5432/d?sslmode=require",
            "postgresql+asyncpg://u@h:5432/d?sslmode=require",
        ),
    ],
)
def test_an_address_names_its_driver(text: str, expected: str) -> None:
    assert storage_url(text).render_as_string() == expected


@pytest.mark.parametrize(
    "text", ["mysql://u:secret@h/d", "secret", "sqlite://", "sqlite:///:memory:"]
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(StorageError, match="write sqlite:///FILE or postgresql://") as caught:
        storage_url(text)
    assert "secret" not in str(caught.value)


def test_a_file_serves_one_node() -> None:
    check_cluster("sqlite:///b", 1)
    check_cluster("postgresql://u@h/d", 5)
    with pytest.raises(StorageError, match=r"5 nodes, but .* set TOLLGATE_STORAGE_URL to"):
        check_cluster("sqlite:///b", 5)
    assert addresses.shown_url(storage_url("postgresql://u:p@h/d")) == "postgresql://u:***@h/d"
