"""The rows about Memcached, where it holds the counters (B11; BACKEND_TYPE=altcache)."""

from dataclasses import dataclass

from tollgate.serve.settings.rows import setting
from tollgate.serve.settings.values import (
    Address,
    boolean,
    duration,
    peers,
    srv_name,
    text,
    whole_number,
)


@dataclass(frozen=True, slots=True)
class MemcachedSettings:
    """The nodes, and the ways to them."""

    nodes: tuple[Address, ...] = setting(
        "ALTCACHE_HOST_PORT", peers, "", "nodes of Memcached, host:port,host:port"
    )
    srv: str = setting(
        "ALTCACHE_SRV", srv_name, "", "SRV record of the nodes of Memcached, instead of a list"
    )
    srv_refresh_s: float = setting(
        "ALTCACHE_SRV_REFRESH", duration(), "0", "time between look-ups of the record; 0: once"
    )
    idle_connections_max: int = setting(
        "ALTCACHE_MAX_IDLE_CONNS",
        whole_number(0, 65_536),
        "2",
        "idle connections kept per node; 0: 2",
    )
    timeout_s: float = setting(
        "ALTCACHE_TIMEOUT", duration("1ms", "1m"), "500ms", "longest wait for a node of Memcached"
    )
    has_tls: bool = setting("ALTCACHE_TLS", boolean, "false", "TLS to the nodes of Memcached")
    tls_cert: str = setting(
        "ALTCACHE_TLS_CLIENT_CERT", text, "", "file of our certificate for Memcached"
    )
    tls_key: str = setting(
        "ALTCACHE_TLS_CLIENT_KEY", text, "", "file of our private key for Memcached"
    )
    tls_ca: str = setting(
        "ALTCACHE_TLS_CACERT", text, "", "file of the CA of Memcached; empty: the system's"
    )
    tls_takes_any_host: bool = setting(
        "ALTCACHE_TLS_SKIP_HOSTNAME_VERIFICATION",
        boolean,
        "false",
        "take a certificate of Memcached for any host name",
    )
