"""What a process of the payments API is made of, put together: settings in, an application out."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import ray
from fastapi import FastAPI

from actors.kernel.clock import Clock, SystemClock
from actors.ledger.actor import RayShardLine, ShardSpec, start_shard, start_shards
from actors.ledger.client import LedgerClient
from actors.ledger.journal.addresses import check_cluster
from actors.ledger.journal.deliveries import SqlDeliveryStore
from actors.ledger.journal.engine import Database
from actors.ledger.journal.key_uses import SqlKeyUses
from actors.ledger.journal.migrating import open_database, upgrade
from actors.ledger.journal.reading import SqlReadStore
from actors.ledger.journal.writing import SqlJournalStore
from actors.ledger.routing import ShardMap
from actors.ledger.shard import ShardBounds
from actors.ledger.store import JournalStore
from actors.ratelimit.local_counters import LocalCounters
from actors.ratelimit.partitions.actor import PartitionedCounters
from actors.ratelimit.tallies import Tallies
from serve.payments.application import payments_application
from serve.payments.auth import Authentication
from serve.payments.call import Trust
from serve.payments.card_network import CardNetworks
from serve.payments.delivery import DeliveryPump, PumpBounds
from serve.payments.desk import Desk
from serve.payments.door import Door, OperatorKey
from serve.payments.facts import Facts
from serve.payments.invitations import PostedInvitations
from serve.payments.key_uses import KeyUses
from serve.payments.keys import KeyDigests
from serve.payments.mail import Post, open_post
from serve.payments.master_secret import load_master_secret
from serve.payments.minting import Minting
from serve.payments.operator_key import load_operator_key
from serve.payments.ordering import Ordering
from serve.payments.own_limits import OwnLimits, load_limits, own_limits
from serve.payments.reference import load_reference
from serve.payments.simulated_network import SimulatedNetwork
from serve.payments.upkeep import Upkeep
from serve.payments.webhook_secrets import SecretBox
from serve.payments.webhooks import TargetPolicy, WebhookSender
from serve.settings import Settings
from serve.wiring import NAMESPACE, RateLimitActors

# A shard that takes longer is asked again, with the same operation ids.
SHARD_ANSWERS_WITHIN_S = 3.0


@dataclass(frozen=True, slots=True)
class PaymentsParts:
    """The parts of one process of the API. `operator_app` None: the operator has no key."""

    app: FastAPI
    operator_app: FastAPI | None
    database: Database
    pump: DeliveryPump
    sender: WebhookSender
    post: Post
    key_uses: KeyUses
    upkeep: Upkeep
    tallies: Tallies


async def payments_parts(settings: Settings, actors: RateLimitActors) -> PaymentsParts:
    """The parts, put together and not yet started. Raises StorageError, SecretFileError,
    DataFileError, RuleFileError: each one line for the operator."""
    clock: Clock = SystemClock()
    secret = load_master_secret(settings.payments.secret_path(settings.process.data))
    reference = load_reference(settings.payments.tables)
    tallies = Tallies(f"payments-{os.getpid()}")
    ledger = await _ledger(settings, clock)
    database = await open_database(settings.ledger.storage_url(settings.process.data))
    store, digests, mint = SqlReadStore(database), KeyDigests(secret), Minting(secret)
    uses = KeyUses(SqlKeyUses(database), clock)
    deliveries, box = SqlDeliveryStore(database), SecretBox(secret)
    post = open_post(settings.mail, settings.process.data, clock)
    targets = TargetPolicy(settings.webhooks.allows_http, settings.webhooks.allows_private)
    sender = WebhookSender(targets, settings.webhooks.timeout_s)
    desk = Desk(
        store=store,
        facts=Facts(store),
        authentication=Authentication(store, digests, uses, clock),
        ordering=Ordering(ledger, mint, clock, reference.errors),
        limits=_limits(settings, actors, clock, tallies),
        reference=reference,
        networks=CardNetworks(SimulatedNetwork(reference.errors)),
        mint=mint,
        digests=digests,
        key_uses=uses,
        invitations=PostedInvitations(post),
        deliveries=deliveries,
        secret_box=box,
        targets=targets,
        clock=clock,
    )
    trust = Trust(await asyncio.to_thread(_addresses), settings.payments.trusts_forwarded)
    door = Door(desk, trust=trust, adds_request_id=False)
    tollgate = version("tollgate")
    bounds = PumpBounds(
        calls_max=settings.webhooks.calls_max, timeout_s=settings.webhooks.timeout_s
    )
    return PaymentsParts(
        app=payments_application(door, tollgate),
        operator_app=_operator_app(settings, desk, tollgate),
        database=database,
        pump=DeliveryPump(deliveries, sender, box, clock, f"Tollgate/{tollgate}", bounds),
        sender=sender,
        post=post,
        key_uses=uses,
        upkeep=_upkeep(settings, clock),
        tallies=tallies,
    )


def _operator_app(settings: Settings, desk: Desk, tollgate: str) -> FastAPI | None:
    if not settings.payments.operator_key_file:
        return None
    key = desk.digests.stored(load_operator_key(Path(settings.payments.operator_key_file)))
    return payments_application(Door(desk, OperatorKey(key.digest, key.last4)), tollgate)


def _upkeep(settings: Settings, clock: Clock) -> Upkeep:
    ledger, data = settings.ledger, Path(settings.process.data)
    return Upkeep(
        url=ledger.storage_url(settings.process.data),
        anchors=data / "payments" / "anchors",
        backup=Path(ledger.backup) if ledger.backup else None,
        clock=clock,
    )


def _addresses() -> frozenset[str]:
    """Where Serve's proxies call us from: this machine, and the others of the cluster."""
    found = ray.nodes()  # type: ignore[no-untyped-call]
    nodes = [str(node["NodeManagerAddress"]) for node in found if node["Alive"]]
    return frozenset({"127.0.0.1", "::1", *nodes})


def _limits(
    settings: Settings, actors: RateLimitActors, clock: Clock, tallies: Tallies
) -> OwnLimits:
    """One process is the owner of what it counts; several share the partitions, for whose answers
    a thread waits."""
    rules = load_limits(settings.payments.tables / "limits.yaml")
    if settings.payments.replicas == 1:
        return own_limits(rules, LocalCounters(), clock, None, tallies)
    counters = PartitionedCounters(actors.partitions, settings.counting.deadline_s, clock)
    return own_limits(rules, counters, clock, ThreadPoolExecutor(1, "limits"), tallies)


async def _ledger(settings: Settings, clock: Clock) -> LedgerClient:
    """The way to the shards, which are started if they are not there yet."""
    url = settings.ledger.storage_url(settings.process.data)
    nodes = await asyncio.to_thread(ray.nodes)
    check_cluster(url, sum(1 for node in nodes if node["Alive"]))
    await upgrade(url)
    shards = ShardMap(settings.ledger.shards)
    specs = [
        ShardSpec(shards, number, partial(_open_journal, url), clock, ShardBounds())
        for number in range(shards.count)
    ]
    handles = await asyncio.to_thread(start_shards, specs, NAMESPACE)
    lines = [
        RayShardLine(partial(start_shard, spec, NAMESPACE), handle, SHARD_ANSWERS_WITHIN_S)
        for spec, handle in zip(specs, handles, strict=True)
    ]
    return LedgerClient(lines, clock)


async def _open_journal(url: str) -> JournalStore:
    return SqlJournalStore(await open_database(url))
