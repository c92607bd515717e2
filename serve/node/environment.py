"""The environment of Ray and Serve, which read their flags when they are imported.

All that they write goes below the data folder; the ports that they bind are settings.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path

from tollgate.actors.kernel.atomic_file import create_file
from tollgate.serve.node.haproxy import write_program
from tollgate.serve.node.replica_health import DRAINING_PERIOD, HEARD_WITHIN_S
from tollgate.serve.node.socket_folder import private_folder, socket_folder
from tollgate.serve.settings import Settings

LATENCY_BUCKETS_MS = "0.25,0.5,1,2,5,10,25,50,100,500,2000"


def node_environment(settings: Settings) -> dict[str, str]:
    """The variables for a node with these settings, to be added to the process environment."""
    process = settings.process
    data = Path(process.data).resolve()
    haproxy = private_folder(socket_folder(process.data) / "haproxy")
    return {
        "TOLLGATE_DATA": str(data),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(_token_file(data)),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_COLOR_PREFIX": "0",
        # Ray runs workers at the lowest priority, for batch jobs; these answer callers.
        "RAY_worker_niceness": "0",
        # A call that is lost with its actor is heard of before anybody knows why the actor ended.
        "RAY_timeout_ms_task_wait_for_death_info": "100",
        "RAY_SERVE_ENABLE_HA_PROXY": "1",
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
        # The node has no event loop for a handle's router; no handle is on a hot path.
        "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": "1",
        "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": (
            "tollgate.serve.node.disconnect_watch:middlewares"
        ),
        "RAY_SERVE_HAPROXY_NBTHREAD": "1",
        "RAY_SERVE_HAPROXY_BINARY_PATH": str(write_program(haproxy)),
        # Replicas' HTTP server would believe any X-Forwarded-For that comes through HAProxy.
        "FORWARDED_ALLOW_IPS": "none",
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(haproxy / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(haproxy / "admin.sock"),
        "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(haproxy / "metrics.sock"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(haproxy),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(haproxy / "server-state"),
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(process.haproxy_metrics_port),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(process.haproxy_stats_port),
        "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": str(process.fallback_http_port),
        "RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT": str(process.replica_port_min),
        "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT": str(process.replica_port_max),
        # HAProxy hears of a replica that leaves a moment later: others take its calls by then.
        DRAINING_PERIOD: f"{HEARD_WITHIN_S:g}",
        "RAY_SERVE_PROXY_MIN_DRAINING_PERIOD_S": "0.1",
        # A HAProxy that is gone is replaced after three looks, and a replica left alone after two.
        "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "0.5",
        "RAY_SERVE_HAPROXY_HEALTH_CHECK_INTER": "1s",
        # A busy machine may take longer than 5 s to start one.
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
        "RAY_SERVE_REQUEST_LATENCY_BUCKETS_MS": LATENCY_BUCKETS_MS,
    }


def completed_environment(
    environment: Mapping[str, str], added: Mapping[str, str]
) -> dict[str, str]:
    """The environment with these variables added, except those that the operator has set."""
    own = {name: value for name, value in environment.items() if name in added}
    own.pop("TOLLGATE_DATA", None)
    return {**environment, **added, **own}


def _token_file(data: Path) -> Path:
    """The token without which nobody runs code through Ray's ports, made on the first start."""
    path = data / "ray-token"
    if not path.exists():
        create_file(path, secrets.token_hex(32).encode())
    return path
