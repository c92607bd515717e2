"""Values that are good alone and wrong together, each with the line that says so."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tollgate.serve.settings.choices import (
    Backend,
    GrpcFront,
    RuleSource,
    SmtpTls,
    TracingProtocol,
    Transport,
)
from tollgate.serve.settings.outside.kvstore import KvstorePersecondSettings, KvstoreSettings
from tollgate.serve.settings.outside.redis_urls import RedisEndpoint, redis_endpoint
from tollgate.serve.settings.rows import SettingProblem
from tollgate.serve.settings.table import OTLP_PREFIX, TABLE, Groups
from tollgate.serve.settings.values import BadValueError

# In OTEL_EXPORTER_OTLP_HEADERS: all printable characters but `",;\\`, which are written as %22.
_HEADER = re.compile(r"[0-9A-Za-z_.-]+[ \t]*=[ !#-+\--:<-\[\]-~]*")


def problems(settings: Groups) -> Iterator[SettingProblem]:
    """Lists everything that is wrong together; nothing stops at the first."""
    yield from _grpc_tls(settings)
    yield from _control_plane_tls(settings)
    yield from _grpc_front(settings)
    yield from _several_fronts(settings)
    yield from _shadow(settings)
    yield from _memcached(settings)
    yield from _redis(settings)
    yield from _transports(settings)
    yield from _tracing(settings)
    yield from _ports(settings)
    yield from _mail(settings)
    yield from _ledger(settings)


def needs_of_grpcio(settings: Groups) -> tuple[str, ...]:
    """The settings that only the grpcio front can honour, in their canonical names.

    Connection ages count only when they were asked for: they have defaults, and 0 means none.
    """
    grpc = settings.grpc
    asked = {
        "GRPC_SERVER_USE_TLS": grpc.has_tls,
        "GRPC_UDS": grpc.uds != "",
        "GRPC_MAX_CONNECTION_AGE": grpc.connection_age_max_s > 0
        and "GRPC_MAX_CONNECTION_AGE" in settings.given,
    }
    return tuple(name for name, is_asked in asked.items() if is_asked)


def _grpc_tls(settings: Groups) -> Iterator[SettingProblem]:
    grpc = settings.grpc
    if grpc.has_tls and not grpc.tls_cert:
        yield _missing(settings, "GRPC_SERVER_TLS_CERT", "GRPC_SERVER_USE_TLS")
    if grpc.has_tls and not grpc.tls_key:
        yield _missing(settings, "GRPC_SERVER_TLS_KEY", "GRPC_SERVER_USE_TLS")
    if grpc.client_ca and not grpc.has_tls:
        yield _missing(settings, "GRPC_SERVER_USE_TLS", "GRPC_CLIENT_TLS_CACERT")
    if grpc.client_san and not grpc.client_ca:
        yield _missing(settings, "GRPC_CLIENT_TLS_CACERT", "GRPC_CLIENT_TLS_SAN")


def _control_plane_tls(settings: Groups) -> Iterator[SettingProblem]:
    """A certificate has a key, and what is for TLS is not set without it."""
    if settings.rules.source is not RuleSource.XDS:
        return
    plane = settings.control_plane
    cert, key = "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY"
    if plane.cert and not plane.key:
        yield _missing(settings, key, cert)
    if plane.key and not plane.cert:
        yield _missing(settings, cert, key)
    needing = {
        cert: plane.cert,
        "CONFIG_GRPC_XDS_SERVER_TLS_CACERT": plane.server_ca,
        "CONFIG_GRPC_XDS_SERVER_TLS_SAN": plane.server_san,
    }
    by = next((name for name, value in needing.items() if value), None)
    if by is not None and not plane.has_tls:
        yield _missing(settings, "CONFIG_GRPC_XDS_SERVER_USE_TLS", by)


def _missing(settings: Groups, needed: str, by: str) -> SettingProblem:
    line = f"{settings.spelled(needed)}: is not set, but {settings.spelled(by)} needs it"
    return SettingProblem((needed, by), line)


def _grpc_front(settings: Groups) -> Iterator[SettingProblem]:
    if settings.grpc.front is not GrpcFront.NATIVE:
        return
    for name in needs_of_grpcio(settings):
        line = f"GRPC_FRONT: the native front cannot honour {name}: set GRPC_FRONT=auto"
        yield SettingProblem(("GRPC_FRONT", name), line)


def _several_fronts(settings: Groups) -> Iterator[SettingProblem]:
    """Several front processes need ports that they can share."""
    grpc, count = settings.grpc, settings.grpc.processes
    if not grpc.has_peers:
        return
    fronts = settings.spelled("GRPC_FRONTS")
    if grpc.uds:
        line = f"{settings.spelled('GRPC_UDS')}: {count} fronts cannot share a unix socket: unset"
        yield SettingProblem(("GRPC_UDS", "GRPC_FRONTS"), f"{line} it, or set {fronts}=1")
    for name, port in (("GRPC_PORT", grpc.port), ("JSON_PORT", settings.json.port)):
        if not port and not (name == "GRPC_PORT" and grpc.uds):
            line = f"{settings.spelled(name)}: {count} fronts cannot share a port that is found at"
            yield SettingProblem((name, "GRPC_FRONTS"), f"{line} the start: name one")


def _shadow(settings: Groups) -> Iterator[SettingProblem]:
    """The shadow counts elsewhere than what decides."""
    counting = settings.counting
    if counting.shadow is not counting.backend:
        return
    place, implied = counting.backend.value, ""
    if "BACKEND_TYPE" not in settings.given:
        implied = (
            f": {settings.spelled('KVSTORE_URL')} alone means it" if place == "kvstore" else ""
        )
    line = (
        f"COUNTING_SHADOW: {place} decides already{implied}: set BACKEND_TYPE to what shall decide"
    )
    yield SettingProblem(("COUNTING_SHADOW", "BACKEND_TYPE"), line)


def _memcached(settings: Groups) -> Iterator[SettingProblem]:
    """Where the nodes are is said once (B11)."""
    if not settings.counting.is_counted_in(Backend.ALTCACHE):
        return
    memcached = settings.memcached
    names = ("ALTCACHE_HOST_PORT", "ALTCACHE_SRV")
    listed, srv = map(settings.spelled, names)
    if memcached.nodes and memcached.srv:
        yield SettingProblem(names, f"{listed} and {srv}: both say where the nodes are: unset one")
    elif not memcached.nodes and not memcached.srv:
        line = f"{listed}: is not set, but {settings.spelled('BACKEND_TYPE')} needs it, or {srv}"
        yield SettingProblem((*names, "BACKEND_TYPE"), line)
    if memcached.has_tls and memcached.tls_cert and not memcached.tls_key:
        yield _missing(settings, "ALTCACHE_TLS_CLIENT_KEY", "ALTCACHE_TLS_CLIENT_CERT")
    if memcached.has_tls and memcached.tls_key and not memcached.tls_cert:
        yield _missing(settings, "ALTCACHE_TLS_CLIENT_CERT", "ALTCACHE_TLS_CLIENT_KEY")


def has_tls_to_redis(settings: Groups) -> bool:
    """Whether any Redis of these settings is reached over TLS. BadValueError for a bad URL."""
    servers: list[KvstoreSettings | KvstorePersecondSettings] = [settings.kvstore]
    if settings.persecond.is_on:
        servers.append(settings.persecond)
    return any(each.has_tls or redis_place(settings, each).has_tls for each in servers)


def redis_place(
    settings: Groups, server: KvstoreSettings | KvstorePersecondSettings
) -> RedisEndpoint:
    """The place of one of the two stores in Redis. Raises `BadValueError`."""
    name = "KVSTORE" if server is settings.kvstore else "KVSTORE_PERSECOND"
    socket = server.socket if f"{name}_SOCKET_TYPE" in settings.given else None
    return redis_endpoint(server.url, server.layout, socket)


def _redis(settings: Groups) -> Iterator[SettingProblem]:
    """URLs are read by what they stand for; TLS needs both halves of a certificate."""
    if not settings.counting.is_counted_in(Backend.KVSTORE):
        return
    servers: dict[str, KvstoreSettings | KvstorePersecondSettings] = {
        "KVSTORE_URL": settings.kvstore,
        "KVSTORE_PERSECOND_URL": settings.persecond,
    }
    for name, server in servers.items():
        if server is settings.persecond and not settings.persecond.is_on:
            continue
        try:
            redis_place(settings, server)
        except BadValueError as error:
            shown = TABLE[name].show(server.url)
            yield SettingProblem((name,), f"{settings.spelled(name)}: {shown!r} {error}")
    halves = ("KVSTORE_TLS_CLIENT_CERT", "KVSTORE_TLS_CLIENT_KEY")
    cert, key = settings.kvstore.tls_cert, settings.kvstore.tls_key
    if cert and not key:
        yield _missing(settings, halves[1], halves[0])
    if key and not cert:
        yield _missing(settings, halves[0], halves[1])


def _transports(settings: Groups) -> Iterator[SettingProblem]:
    """At most one transport of statistics (B22)."""
    if settings.statistics.transport is Transport.DISABLED:
        return
    chosen = {
        "USE_STATSD": settings.statistics.uses_statsd,
        "USE_AGENT_STATSD": settings.statistics.uses_agent_statsd,
        "USE_PULLMETRICS": settings.statistics.uses_pullmetrics,
    }
    names = tuple(name for name, is_chosen in chosen.items() if is_chosen)
    if len(names) > 1:
        spelled = " and ".join(map(settings.spelled, names))
        line = f"{spelled}: only one transport of statistics can be chosen: leave one true"
        yield SettingProblem(names, line)


def _tracing(settings: Groups) -> Iterator[SettingProblem]:
    """OpenTelemetry's own variables, where they are used."""
    if settings.tracing.is_on:
        for name, what in _wrong_exporter_variables(settings.tracing.protocol, settings.otlp):
            yield SettingProblem((name, "TRACING_ENABLED"), f"{name}: {what}")


def _wrong_exporter_variables(
    protocol: TracingProtocol, variables: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Names and what is wrong with their values: the exporters would fail on them, or not heed
    them, only when they are made."""
    needs_url = protocol is TracingProtocol.HTTP
    compressions = ("none", "gzip", "deflate") if needs_url else ("gzip",)
    for name, value in variables.items():
        kind = name.removeprefix(OTLP_PREFIX).removeprefix("TRACES_")
        if kind == "TIMEOUT" and not _is_time(value):
            yield name, f"{value!r} is not a number of seconds above 0"
        elif kind == "COMPRESSION" and value.lower().strip() not in compressions:
            yield name, f"{value!r} is not one of {', '.join(compressions)}"
        elif kind == "ENDPOINT" and value and needs_url and not _is_url(value):
            yield name, "its value is not a URL, http://host:port"
        elif kind == "HEADERS" and not all(map(_is_header, value.split(","))):
            yield name, "its value is not a list of headers, name=value,name=value"


def _is_time(value: str) -> bool:
    try:
        return float(value) > 0
    except ValueError:
        return False


def _is_header(written: str) -> bool:
    """Whether an exporter takes it, and can send it: a line that is broken in the value cannot be.
    Nothing at all is fine."""
    if not written.strip():
        return True
    value = unquote(written.partition("=")[2])
    return bool(_HEADER.fullmatch(written.strip())) and value.isascii() and value.isprintable()


def _is_url(value: str) -> bool:
    url = urlsplit(value)
    return url.scheme in ("http", "https") and bool(url.hostname)


def _ports(settings: Groups) -> Iterator[SettingProblem]:
    """Every port that is opened on this machine is another one; 0 is a free one."""
    process = settings.process
    ports = {
        "PORT": settings.http.port,
        "JSON_PORT": settings.json.port,
        "DEBUG_PORT": settings.debug.port,
        "HAPROXY_METRICS_PORT": process.haproxy_metrics_port,
        "HAPROXY_STATS_PORT": process.haproxy_stats_port,
        "SERVE_FALLBACK_HTTP_PORT": process.fallback_http_port,
    }
    if process.has_ray_dashboard:
        ports["RAY_DASHBOARD_PORT"] = process.ray_dashboard_port
    if not settings.grpc.uds:
        ports["GRPC_PORT"] = settings.grpc.port
    if settings.statistics.transport is Transport.PULLMETRICS:
        ports["PULLMETRICS_ADDR"] = settings.statistics.pullmetrics_addr.port
    for port, count in Counter(ports.values()).items():
        if port and count > 1:
            names = tuple(name for name in ports if ports[name] == port)
            spelled = " and ".join(map(settings.spelled, names))
            yield SettingProblem(names, f"{spelled}: cannot all be port {port}: change one")
    ends = ("SERVE_REPLICA_PORT_MIN", "SERVE_REPLICA_PORT_MAX")
    lowest, highest = process.replica_port_min, process.replica_port_max
    if lowest > highest:
        yield SettingProblem(
            ends, f"SERVE_REPLICA_PORT_MIN: {lowest} is above the maximum, {highest}"
        )
    for name, port in ports.items():
        if lowest <= port <= highest:
            line = f"{settings.spelled(name)}: {port} is a replica's port ({lowest} to {highest})"
            yield SettingProblem((name, *ends), line)


def _mail(settings: Groups) -> Iterator[SettingProblem]:
    mail = settings.mail
    if mail.host and not mail.sender:
        yield _missing(settings, "MAIL_FROM", "SMTP_HOST")
    if mail.user and not mail.password:
        yield _missing(settings, "SMTP_PASSWORD", "SMTP_USER")
    if mail.password and not mail.user:
        yield _missing(settings, "SMTP_USER", "SMTP_PASSWORD")
    if mail.password and mail.tls is SmtpTls.NONE:
        line = (
            f"{settings.spelled('SMTP_TLS')}: none would send SMTP_PASSWORD for everybody on the "
            "way to read: set starttls or tls"
        )
        yield SettingProblem(("SMTP_TLS", "SMTP_PASSWORD"), line)


def _ledger(settings: Groups) -> Iterator[SettingProblem]:
    ledger = settings.ledger
    if ledger.shards > 1 and not ledger.storage.startswith("postgresql://"):
        line = (
            f"{settings.spelled('LEDGER_SHARDS')}: {ledger.shards} shards cannot share an SQLite "
            "file: set TOLLGATE_STORAGE_URL to a PostgreSQL database, or use 1"
        )
        yield SettingProblem(("LEDGER_SHARDS", "TOLLGATE_STORAGE_URL"), line)
    if ledger.anchors and not ledger.anchor_key_file:
        yield _missing(settings, "LEDGER_ANCHOR_KEY_FILE", "LEDGER_ANCHORS")
    data = Path(os.path.abspath(settings.process.data))  # (a place need not be there yet)
    outside = {"LEDGER_ANCHORS": ledger.anchors, "LEDGER_ANCHOR_KEY_FILE": ledger.anchor_key_file}
    for name, place in outside.items():
        if place and Path(os.path.abspath(place)).is_relative_to(data):
            line = (
                f"{settings.spelled(name)}: is in the data folder, {data}: whoever can change the "
                "books there could change it as well: name a place elsewhere"
            )
            yield SettingProblem((name, "TOLLGATE_DATA"), line)
