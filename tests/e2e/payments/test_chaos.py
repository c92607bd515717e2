"""Payments while everything breaks: nothing that was told is lost, nothing is done twice.

A Tollgate as an operator starts it, on SQLite and on PostgreSQL, under the load of many tills
(`payments_tills.py`). Killed are the shard that writes the books, one of two processes of the API,
and at last the whole node; between, the shard is stopped, replaced in its storage, and woken up
again. Afterwards every answer is asked for once more, and the books are gone through.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import chain

import httpx
import psutil
import pytest

from tests.e2e.conftest import StartTollgate
from tests.e2e.payments.tills import Load, Shop, Sums, Till, Told, open_shops
from tests.support.processes.tollgate import TollgateProcess
from tests.support.servers.postgresql import postgresql_server
from tests.support.waiting import until
from tollgate.actors.ledger.shard.routing import ShardMap
from tollgate.actors.ledger.storage.migration import open_database
from tollgate.actors.ledger.storage.writer import SqlJournalStore

SHOPS = 2
# None pauses, and the more there are, the less is left for what they call.
TILLS_PER_SHOP, TILLS_THOROUGH = 4, 8
# Less than the tills would like to have.
SHARED = 60
PAGE = 1_000
SHARD, REPLICA = "ray::LedgerShard", "ray::ServeReplica:payments:Payments"


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.repetition)]
)
def storage(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The setting of a new storage."""
    if request.param == "sqlite":
        yield {}
        return
    with postgresql_server() as url:
        yield {"TOLLGATE_STORAGE_URL": url}


@pytest.fixture(scope="module")
def chaos(
    storage: dict[str, str], start_tollgate: StartTollgate, pytestconfig: pytest.Config
) -> Iterator[tuple[TollgateProcess, Load]]:
    """What is left when all of it is over."""
    settings = {
        **storage,
        "PAYMENTS_REPLICAS": "2",
        "CATALOG_ENABLED": "false",
        # What a killed replica has borrowed of the limits is away for a while: calls pass.
        "COUNTER_DEADLINE": "100ms",
    }
    with start_tollgate(settings) as tollgate:
        load = open_shops(tollgate.url("PORT", "/payments"), SHOPS, SHARED)
        with load.flowing(TILLS_THOROUGH if pytestconfig.getoption("thorough") else TILLS_PER_SHOP):
            load.wait_for_more(2)
            kill_one(tollgate, SHARD)
            load.wait_for_more(2)
            stop_and_replace_the_shard(tollgate, load)
            load.wait_for_more(2)
            kill_one(tollgate, REPLICA)
            load.wait_for_more(2)
            kill_the_node(tollgate)
            tollgate.up()
            load.wait_for_more(2)
        tollgate.remember_processes()
        yield tollgate, load


def processes(tollgate: TollgateProcess, title: str) -> list[psutil.Process]:
    found = []
    for process in psutil.Process(tollgate.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.cmdline()[:1] and process.cmdline()[0].startswith(title):
                found.append(process)
    return found


def kill_one(tollgate: TollgateProcess, title: str) -> None:
    before = until(lambda: processes(tollgate, title), f"{title} runs")
    tollgate.remember_processes()
    before[0].kill()
    pids = {process.pid for process in before}
    until(
        lambda: [each for each in processes(tollgate, title) if each.pid not in pids],
        f"another {title} runs in its place",
    )


def stop_and_replace_the_shard(tollgate: TollgateProcess, load: Load) -> None:
    """A split of the network as the shard would see it: nobody hears it, another takes its epoch,
    and it goes on with what had reached it before it knows; unless its clients, whom it has not
    answered for 6 s, have removed it by then."""
    (older,) = processes(tollgate, SHARD)
    load.pause()  # (one that is stopped inside a commit keeps storage to itself)
    older.send_signal(signal.SIGSTOP)
    try:
        asyncio.run(take_over(tollgate))
        load.go_on()
        until(lambda: load.asking == len(load.tills), "every till asks the stopped shard")
    finally:
        with suppress(psutil.NoSuchProcess):
            older.send_signal(signal.SIGCONT)
    until(lambda: not older.is_running(), "the shard that was replaced ends its process")


async def take_over(tollgate: TollgateProcess) -> None:
    url = tollgate.environment.get(
        "TOLLGATE_STORAGE_URL", f"sqlite:///{tollgate.data / 'payments' / 'ledger.sqlite'}"
    )
    database = await open_database(url)
    store = SqlJournalStore(database)
    await store.take_over(ShardMap(1).name(0), "a shard of the tests")
    await store.close()
    await database.close()


def kill_the_node(tollgate: TollgateProcess) -> None:
    """All of it at once, as when the machine is switched off."""
    node = psutil.Process(tollgate.pid)
    tollgate.remember_processes()
    family = [node, *node.children(recursive=True)]
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=30)


def test_every_answer_that_was_told_is_told_again(chaos: tuple[TollgateProcess, Load]) -> None:
    _, load = chaos
    with ThreadPoolExecutor(len(load.tills)) as threads:
        differing = list(chain.from_iterable(threads.map(partial(retold, load), load.tills)))
    assert differing == []
    assert sum(till.asked_again for till in load.tills) > 0, "nothing broke that anybody noticed"


def retold(load: Load, till: Till) -> list[tuple[Told, int, bytes]]:
    """The calls that are now answered in another way."""
    differing = []
    with load.client() as client:
        for told in till.told:
            headers = {"Idempotency-Key": told.key}
            answer = client.post(told.path, json=told.body, headers=headers)
            is_replay = answer.headers.get("idempotency-replayed") == "true"
            if (answer.status_code, answer.content, is_replay) != (201, told.content, True):
                differing.append((told, answer.status_code, answer.content))
    return differing


def listed(client: httpx.Client, path: str) -> list[dict[str, object]]:
    """All of a list, page by page."""
    found: list[dict[str, object]] = []
    query: dict[str, str | int] = {"limit": PAGE}
    while True:
        page = client.get(path, params=query).raise_for_status().json()
        found += page
        if len(page) < PAGE:
            return found
        query["before"] = page[-1]["id"]


def test_no_payment_is_lost_and_none_is_there_that_nobody_made(
    chaos: tuple[TollgateProcess, Load],
) -> None:
    _, load = chaos
    with load.client() as client:
        for shop in load.shops:
            stored = listed(client, f"/merchants/{shop.merchant}/transactions")
            found = {str(each["id"]): Sums.of(each) for each in stored}
            assert found == known(load, shop)


def known(load: Load, shop: Shop) -> dict[str, Sums]:
    """What the tills of a shop know."""
    tills = [till for till in load.tills if till.shop == shop]
    drawn = sum(till.from_shared for till in tills)
    assert drawn == min(SHARED, drawn)
    sums = {shop.source: Sums(1), shop.shared: Sums(SHARED, captured=drawn)}
    for till in tills:
        sums |= till.transactions
    return sums


def test_every_movement_of_money_has_one_line_and_the_balance_is_their_sum(
    chaos: tuple[TollgateProcess, Load],
) -> None:
    _, load = chaos
    with load.client() as client:
        for shop in load.shops:
            lines = listed(client, f"/merchants/{shop.merchant}/lines")
            merchant = client.get(f"/merchants/{shop.merchant}").raise_for_status().json()
            kinds = Counter("captures" if line.get("capture") else "refunds" for line in lines)
            made: Counter[str] = Counter()
            for till in load.tills:
                if till.shop == shop:
                    made += till.lines
            assert kinds == {what: made[what] for what in ("captures", "refunds")}
            assert merchant["merchant"]["balance"] == sum(int(str(x["balance"])) for x in lines)


@pytest.mark.parametrize("command", ["verify", "trial-balance"])
def test_the_books_are_sound(chaos: tuple[TollgateProcess, Load], command: str) -> None:
    tollgate, _ = chaos
    done = tollgate.command("ledger", command)
    assert done.returncode == 0, done.stdout + done.stderr
