"""Composes one process of the payments API from the settings."""

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from secrets import randbits

import ray
from fastapi import FastAPI

from tollgate.actors.kernel.clock import Clock, SystemClock
from tollgate.actors.ledger.shard.actor import RayShardConnection, start_shard, start_shards
from tollgate.actors.ledger.shard.client import LedgerClient
from tollgate.actors.ledger.shard.pipeline import ShardBounds
from tollgate.actors.ledger.shard.routing import ShardMap
from tollgate.actors.ledger.shard.spec import ShardSpec, release_of
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.connections.location import check_cluster
from tollgate.actors.ledger.storage.deliveries.store import SqlDeliveryStore
from tollgate.actors.ledger.storage.key_uses import SqlInstallation, SqlKeyUses
from tollgate.actors.ledger.storage.migration import open_database, upgrade
from tollgate.actors.ledger.storage.open_intents import SqlOpenIntents
from tollgate.actors.ledger.storage.reading.reader import SqlReadStore
from tollgate.actors.ledger.storage.single_uses import SqlSingleUses
from tollgate.actors.ledger.storage.store import JournalStore
from tollgate.actors.ledger.storage.writer import SqlJournalStore
from tollgate.actors.ratelimit.counting.counters import LocalCounters
from tollgate.actors.ratelimit.lent_counting.occasional_counters import OccasionalCounters
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.net.public_addresses import Exposure, exposure_of
from tollgate.serve.node.logs import configure_logs
from tollgate.serve.payments.api.access import Authentication
from tollgate.serve.payments.api.application import payments_application
from tollgate.serve.payments.api.asgi import Dispatcher, OperatorKey
from tollgate.serve.payments.api.call import AddressTrust
from tollgate.serve.payments.api.context import ApiContext, TradePolicy
from tollgate.serve.payments.api.entity_cache import EntityCache
from tollgate.serve.payments.api.health import BooksHealth, StorageWatch
from tollgate.serve.payments.api.limits.calls import EngineLimits, engine_limits, load_limits
from tollgate.serve.payments.api.limits.waiting_merchants import WaitingMerchants
from tollgate.serve.payments.api.orders import DEADLINE_S, CommandGateway
from tollgate.serve.payments.checkout.parts import checkout_parts
from tollgate.serve.payments.mail.mailer import BackgroundInvitations, Mailer, open_mailer
from tollgate.serve.payments.network.card_network import CardNetworks
from tollgate.serve.payments.network.conclusions import Conclusions
from tollgate.serve.payments.network.enquiries import EnquiryWorker
from tollgate.serve.payments.network.http_network import HttpNetwork
from tollgate.serve.payments.network.networks_file import load_networks
from tollgate.serve.payments.network.simulator import GENERIC, SimulatedNetwork
from tollgate.serve.payments.reference.exchange_rates import ExchangeRates
from tollgate.serve.payments.reference.tables import ReferenceData, load_reference
from tollgate.serve.payments.secrets.generator import SecretGenerator
from tollgate.serve.payments.secrets.key_files import load_anchor_key, load_operator_key
from tollgate.serve.payments.secrets.key_uses import KeyUses
from tollgate.serve.payments.secrets.keys import KeyDigests
from tollgate.serve.payments.secrets.master_secret import MasterSecret, open_master_secret
from tollgate.serve.payments.secrets.vault_keys import VaultKeys, open_vault_keys
from tollgate.serve.payments.telemetry.books_gauges import BooksGauges
from tollgate.serve.payments.telemetry.delivery_meter import DeliveryMeter
from tollgate.serve.payments.telemetry.metered_network import MeteredNetwork
from tollgate.serve.payments.telemetry.request_meter import RequestMeter
from tollgate.serve.payments.telemetry.request_tracer import SERVICE_NAME
from tollgate.serve.payments.upkeep import AnchorExports, Upkeep, UpkeepRecord
from tollgate.serve.payments.webhooks.caller import WebhookCaller
from tollgate.serve.payments.webhooks.calls import WebhookSender, WebhookTargets
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer
from tollgate.serve.payments.webhooks.worker import DeliveryBounds, DeliveryWorker
from tollgate.serve.ratelimit.backends.choice import outside_store
from tollgate.serve.ratelimit.backends.outside_store import Counters, OutsideStore
from tollgate.serve.ratelimit.engine import counter_store
from tollgate.serve.ratelimit.tracing.set_up import CallTracing, set_up_call_tracing
from tollgate.serve.ratelimit.wiring import NAMESPACE, RateLimitActors
from tollgate.serve.settings import Settings, add_to_process_environment

# A shard that takes longer is asked again, with the same operation ids.
SHARD_ANSWERS_WITHIN_S = 3.0
# A caller waits no longer for a statement on PostgreSQL than for an order.
STATEMENT_WITHIN_S = DEADLINE_S


@dataclass(frozen=True, slots=True)
class PaymentsParts:
    """The parts of one process of the API. `operator_app` None: the operator has no key.
    `shared_counts` None: the process counts calls by itself."""

    app: FastAPI
    operator_app: FastAPI | None
    database: Database
    shards: Sequence[RayShardConnection]
    delivery_worker: DeliveryWorker
    enquiries: EnquiryWorker
    gateways: Sequence[HttpNetwork]
    sender: WebhookSender
    post: Mailer
    key_uses: KeyUses
    upkeep: Upkeep
    books_gauges: BooksGauges
    rates: ExchangeRates
    vault_keys: VaultKeys
    tallies: Tallies
    shared_counts: "SharedCounts | None"
    tracing: CallTracing | None


@dataclass(frozen=True, slots=True)
class SharedCounts:
    """The counts of calls that several processes share. `thread`: one, the counters are its own.
    `outside`: the store that they are in, when it is not the partitions."""

    counters: OccasionalCounters
    thread: ThreadPoolExecutor
    outside: OutsideStore | None

    async def look(self) -> None:
        """Gives back what is borrowed, when nothing was counted for a while."""
        await asyncio.get_running_loop().run_in_executor(self.thread, self.counters.look)

    async def close(self) -> None:
        """Gives back what is borrowed."""
        await asyncio.get_running_loop().run_in_executor(self.thread, self.counters.close)


async def payments_parts(settings: Settings, actors: RateLimitActors) -> PaymentsParts:
    """The parts, put together and not yet started. Raises StorageError, SecretFileError,
    DataFileError, RuleFileError: each one line for the operator."""
    clock: Clock = SystemClock()
    reference = load_reference(settings.payments.tables)
    tallies, shards = Tallies(f"payments-{os.getpid()}"), await _shards(settings, clock)
    database = await open_database(
        settings.ledger.storage_url(settings.process.data), STATEMENT_WITHIN_S
    )
    secret, vault_keys = await _secrets(settings, database)
    store, digests, generator = SqlReadStore(database), KeyDigests(secret), SecretGenerator(secret)
    uses, box = KeyUses(SqlKeyUses(database), clock), WebhookSecretSealer(secret)
    deliveries = SqlDeliveryStore(database)
    post = open_mailer(settings.mail, settings.process.data, clock)
    targets = webhook_targets(settings)
    sender = WebhookSender(targets, settings.webhooks.timeout_s)
    tollgate = version("tollgate")
    caller = WebhookCaller(sender, box, clock, f"Tollgate/{tollgate}")
    shared_counts = _shared_counts(settings, actors, clock, tallies)
    client, watch = LedgerClient(shards), StorageWatch(clock, tallies.count)
    gateways, live = _gateways(settings, reference)
    context = ApiContext(
        store=store,
        entities=EntityCache(store),
        authentication=Authentication(store, digests, uses, clock),
        commands=CommandGateway(client, generator, reference.errors, clock),
        limits=_limits(settings, shared_counts, clock, tallies),
        reference=reference,
        networks=_networks(gateways, live, reference, tallies),
        conclusions=Conclusions(client, generator),
        checkout=checkout_parts(secret, vault_keys, SqlSingleUses(database), clock),
        secrets=generator,
        digests=digests,
        key_uses=uses,
        invitations=BackgroundInvitations(post, mails_for_test=settings.mail.is_on_for_test),
        deliveries=deliveries,
        secret_sealer=box,
        webhook_caller=caller,
        targets=targets,
        trade=_trade_policy(settings),
        waiting=WaitingMerchants(store, clock),
        clock=clock,
    )
    trust = AddressTrust(await asyncio.to_thread(_addresses), settings.payments.trusts_forwarded)
    tracing, upkeep = _tracing(settings, clock, tallies), _upkeep(settings, clock)
    meter = RequestMeter(tallies, tracing)
    door = Dispatcher(context, trust=trust, adds_request_id=False, watch=watch, meter=meter)
    bounds = DeliveryBounds(
        calls_max=settings.webhooks.calls_max, timeout_s=settings.webhooks.timeout_s
    )
    return PaymentsParts(
        app=payments_application(door, tollgate, _health(store, shards, clock)),
        operator_app=_operator_app(settings, context, tollgate, meter),
        database=database,
        shards=shards,
        delivery_worker=DeliveryWorker(deliveries, caller, clock, bounds, DeliveryMeter(tallies)),
        enquiries=_enquiries(context, database, tallies),
        gateways=gateways,
        sender=sender,
        post=post,
        key_uses=uses,
        upkeep=upkeep,
        books_gauges=BooksGauges(tallies, deliveries, upkeep.record, clock),
        rates=reference.rates,
        vault_keys=vault_keys,
        tallies=tallies,
        shared_counts=shared_counts,
        tracing=tracing,
    )


def _tracing(settings: Settings, clock: Clock, tallies: Tallies) -> CallTracing | None:
    """Tracing by these settings, whose exporters read the environment; None when it is off."""
    if not settings.tracing.is_on:
        return None
    add_to_process_environment(settings.otlp)
    return set_up_call_tracing(settings, SERVICE_NAME, clock, tallies.count, randbits)


async def _secrets(settings: Settings, database: Database) -> tuple[MasterSecret, VaultKeys]:
    own, data = settings.payments, settings.process.data
    secret = await open_master_secret(own.secret_path(data), SqlInstallation(database))
    return secret, open_vault_keys(own.vault_path(data))


def _networks(
    gateways: Sequence[HttpNetwork], live: str, reference: ReferenceData, tallies: Tallies
) -> CardNetworks:
    clock = SystemClock()
    simulated = SimulatedNetwork(reference.errors, clock)
    metered = [MeteredNetwork(each, each.name, tallies, clock) for each in gateways]
    return CardNetworks(
        test=MeteredNetwork(simulated, "test", tallies, clock),
        live=next((each for each in metered if each.name == live), None),
        others=tuple(each for each in metered if each.name != live),
    )


def _gateways(settings: Settings, reference: ReferenceData) -> tuple[list[HttpNetwork], str]:
    """The networks of the file, and the name of the one that live merchants use."""
    if not settings.payments.networks:
        return [], ""
    found = load_networks(Path(settings.payments.networks))
    clock = SystemClock()
    return [HttpNetwork(each, reference.errors, clock) for each in found.gateways], found.live


def _enquiries(context: ApiContext, database: Database, tallies: Tallies) -> EnquiryWorker:
    return EnquiryWorker(
        SqlOpenIntents(database),
        context.networks,
        context.conclusions,
        context.clock,
        context.reference.errors.error(GENERIC),
        tallies,
    )


def _trade_policy(settings: Settings) -> TradePolicy:
    own = settings.payments
    return TradePolicy(own.approves_live, own.rates_age_max_ms)


def webhook_targets(settings: Settings) -> WebhookTargets:
    """Test merchants may be on the loopback of a Tollgate that nobody else can call (part D)."""
    own = settings.webhooks
    live = TargetPolicy(own.allows_http, own.allows_private)
    is_ours = own.allows_loopback and not settings.payments.trusts_forwarded
    is_ours = is_ours and exposure_of(settings.http.host.lower()) is Exposure.LOOPBACK
    return WebhookTargets(live, replace(live, allows_loopback=is_ours))


def _operator_app(
    settings: Settings, context: ApiContext, tollgate: str, meter: RequestMeter
) -> FastAPI | None:
    if not settings.payments.operator_key_file:
        return None
    key = context.digests.stored(load_operator_key(Path(settings.payments.operator_key_file)))
    door = Dispatcher(context, OperatorKey(key.digest, key.last4), meter=meter)
    return payments_application(door, tollgate)


def _upkeep(settings: Settings, clock: Clock) -> Upkeep:
    ledger, data = settings.ledger, Path(settings.process.data)
    exports = None
    if ledger.anchors:
        key = load_anchor_key(Path(ledger.anchor_key_file))
        exports = AnchorExports(Path(ledger.anchors), key)
    anchors, backup = data / "payments" / "anchors", Path(ledger.backup) if ledger.backup else None
    return Upkeep(
        url=ledger.storage_url(settings.process.data),
        anchors=anchors,
        backup=backup,
        clock=clock,
        exports=exports,
        record=UpkeepRecord.found(anchors, backup, clock.now_s()),
    )


def _addresses() -> frozenset[str]:
    """Addresses of Serve's proxies: this machine, and the others of the cluster."""
    found = ray.nodes()  # type: ignore[no-untyped-call]
    nodes = [str(node["NodeManagerAddress"]) for node in found if node["Alive"]]
    return frozenset({"127.0.0.1", "::1", *nodes})


def _shared_counts(
    settings: Settings, actors: RateLimitActors, clock: Clock, tallies: Tallies
) -> SharedCounts | None:
    if settings.payments.replicas == 1:
        return None
    outside = outside_store(settings)
    opened: Callable[[], Counters]
    if outside is None:
        servers = len(actors.partitions)
        opened = partial(counter_store, settings, actors.partitions, clock)
    else:
        servers = outside.servers
        opened = partial(outside.open, clock, tallies)
    counters = OccasionalCounters(opened, servers, clock)
    return SharedCounts(counters, ThreadPoolExecutor(1, "limits"), outside)


def _limits(
    settings: Settings, shared: SharedCounts | None, clock: Clock, tallies: Tallies
) -> EngineLimits:
    """One process is the owner of what it counts; several share the partitions, for whose answers
    a thread waits."""
    rules = load_limits(settings.payments.tables / "limits.yaml")
    if shared is None:
        return engine_limits(rules, LocalCounters(), clock, None, tallies)
    return engine_limits(
        rules,
        shared.counters,
        clock,
        shared.thread,
        tallies,
        route=None if shared.outside is None else shared.outside.route,
        prefix=settings.counting.cache_key_prefix,
    )


def _health(store: SqlReadStore, shards: Sequence[RayShardConnection], clock: Clock) -> BooksHealth:
    """The key that nobody has is looked for: one step into an index."""

    async def are_ready() -> None:
        await asyncio.gather(*(shard.ready() for shard in shards))

    return BooksHealth({"read": partial(store.key_owner, ""), "written": are_ready}, clock)


async def _shards(settings: Settings, clock: Clock) -> list[RayShardConnection]:
    """The ways to the shards, which are started if they are not there yet."""
    url = settings.ledger.storage_url(settings.process.data)
    nodes = await asyncio.to_thread(ray.nodes)
    check_cluster(url, sum(1 for node in nodes if node["Alive"]))
    await upgrade(url)
    shards = ShardMap(settings.ledger.shards)
    bounds = ShardBounds(cache_bytes_max=settings.ledger.cache_bytes_max)
    release = await asyncio.to_thread(release_of, url, str(bounds))
    specs = [
        ShardSpec(shards, number, partial(_open_journal, settings, url), clock, bounds, release)
        for number in range(shards.count)
    ]
    handles = await asyncio.to_thread(start_shards, specs, NAMESPACE)
    return [
        RayShardConnection(partial(start_shard, spec, NAMESPACE), handle, SHARD_ANSWERS_WITHIN_S)
        for spec, handle in zip(specs, handles, strict=True)
    ]


async def _open_journal(settings: Settings, url: str) -> JournalStore:
    """In the shard's process."""
    configure_logs(settings)
    return SqlJournalStore(await open_database(url))
