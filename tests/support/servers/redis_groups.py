"""Several Redis processes that belong together: a cluster; a master, its replica and sentinels."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from redis.crc import key_slot

from tests.support.servers.redis import RedisProcess, redis_process
from tests.support.waiting import PATIENCE_S, until
from tollgate.serve.node.ports import free_port

SLOTS = 16_384
SHARE = SLOTS // 3 + 1
# A machine that stands still for a while must not end anybody; a test that ends one shortens it.
PATIENT_MS, HASTY_MS = 60_000, 500
MASTER = "counters"


@dataclass(frozen=True)
class RedisCluster:
    """Masters with a third of the slots each, a replica of the first, and maybe more replicas."""

    masters: tuple[RedisProcess, ...]
    replica: RedisProcess
    others: tuple[RedisProcess, ...] = ()

    @property
    def seeds(self) -> str:
        return ",".join(each.address for each in self.masters)

    def owner(self, name: str) -> RedisProcess:
        """The master that this counter belongs to."""
        slot = key_slot(name.encode())
        return next(each for each in self.masters if slot in _own_slots(each))

    def lose_first(self) -> None:
        """The first master ends; its replica does not take its place yet."""
        self.replica.client.config_set("cluster-replica-no-failover", "yes")
        self.masters[0].kill()

    def promote_replica(self) -> None:
        """The replica may take the place of its master."""
        for each in (*self.masters[1:], self.replica, *self.others):
            each.client.config_set("cluster-node-timeout", HASTY_MS)
        self.replica.client.config_set("cluster-replica-no-failover", "no")

    def counts(self) -> dict[bytes, bytes]:
        """All counters on masters, by name."""
        return {
            name: each.client.get(name) for each in self.masters for name in each.client.scan_iter()
        }


@contextmanager
def redis_cluster() -> Iterator[RedisCluster]:
    """One for as long as the block lasts."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(_cluster_node()) for _ in range(4)]
        *masters, replica = nodes
        for number, node in enumerate(masters):
            end = min(SLOTS, (number + 1) * SHARE) - 1
            node.client.execute_command("CLUSTER", "ADDSLOTSRANGE", number * SHARE, end)
            node.client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in nodes[1:]:
            _meet(nodes[0], node)
        until(lambda: all(_known(each) == 4 for each in nodes), "all nodes know each other")
        first = masters[0].client.execute_command("CLUSTER", "MYID").decode()
        replica.client.execute_command("CLUSTER", "REPLICATE", first)
        until(lambda: all(_is_well(each) for each in nodes), "the cluster is well")
        until(lambda: _is_in_step(replica), "the replica has what its master has")
        yield RedisCluster(tuple(masters), replica)


@contextmanager
def created_cluster() -> Iterator[RedisCluster]:
    """One of three masters and three replicas, as Redis' own command makes it."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(_cluster_node()) for _ in range(6)]
        addresses = [each.address for each in nodes]
        words = ["--cluster-replicas", "1", "--cluster-yes"]
        subprocess.run(
            ["redis-cli", "--cluster", "create", *addresses, *words],
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        until(lambda: all(_known(each) == 6 for each in nodes), "all nodes know each other")
        until(lambda: all(_is_well(each) for each in nodes), "the cluster is well")
        replicas = [each for each in nodes if each.client.info("replication")["role"] == "slave"]
        until(lambda: all(map(_is_in_step, replicas)), "replicas have what their masters have")
        masters = tuple(each for each in nodes if each not in replicas)
        first = masters[0].port
        (replica,) = (r for r in replicas if r.client.info("replication")["master_port"] == first)
        others = tuple(each for each in replicas if each is not replica)
        yield RedisCluster(masters, replica, others)


def _cluster_node() -> Any:
    bus = ["--cluster-port", str(free_port()), "--cluster-node-timeout", str(PATIENT_MS)]
    coverage = ["--cluster-require-full-coverage", "no"]
    return redis_process("--cluster-enabled", "yes", *coverage, *bus)


def _own_slots(node: RedisProcess) -> set[int]:
    lines = node.client.execute_command("CLUSTER", "NODES")
    text = lines.decode() if isinstance(lines, bytes) else str(lines)
    (own,) = (line.split() for line in text.splitlines() if "myself" in line)
    found: set[int] = set()
    for words in own[8:]:
        if not words.startswith("["):
            first, _, last = words.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return found


def _meet(node: RedisProcess, other: RedisProcess) -> None:
    bus = other.words[list(other.words).index("--cluster-port") + 1]
    node.client.execute_command("CLUSTER", "MEET", "127.0.0.1", other.port, bus)


def _information(node: RedisProcess) -> dict[str, str]:
    lines = node.client.execute_command("CLUSTER", "INFO")
    text = (
        lines
        if isinstance(lines, dict)
        else dict(line.split(":", 1) for line in lines.decode().split("\r\n") if ":" in line)
    )
    return {str(key): str(value) for key, value in text.items()}


def _known(node: RedisProcess) -> int:
    return int(_information(node)["cluster_known_nodes"])


def _is_well(node: RedisProcess) -> bool:
    return _information(node)["cluster_state"] == "ok"


def _is_in_step(node: RedisProcess) -> bool:
    found = node.client.info("replication")
    return found.get("role") == "slave" and found.get("master_link_status") == "up"


@dataclass(frozen=True)
class WatchedPair:
    """A master, its replica, and the port of the sentinel that watches them."""

    master: RedisProcess
    replica: RedisProcess
    sentinel: int
    sentinel_password: str

    @property
    def url(self) -> str:
        """The first of the sentinels that it names is not there."""
        return f"{MASTER},127.0.0.1:1,127.0.0.1:{self.sentinel}"

    def lose_master(self) -> None:
        """The master ends, and the sentinel is to make the replica the master soon."""
        sentinel = _sentinel_client(self.sentinel, self.sentinel_password)
        sentinel.sentinel_set(MASTER, "down-after-milliseconds", HASTY_MS)
        self.master.kill()


@contextmanager
def watched_pair(*, password: str = "", sentinel_password: str = "") -> Iterator[WatchedPair]:
    """One for as long as the block lasts. There is one sentinel, for two might need many votes."""
    with ExitStack() as stack:
        auth = ["--masterauth", password] if password else []
        master = stack.enter_context(redis_process(*auth, password=password))
        follows = ["--replicaof", f"127.0.0.1 {master.port}", *auth]
        replica = stack.enter_context(redis_process(*follows, password=password))
        until(lambda: _is_in_step(replica), "the replica has what its master has")
        lines = [
            f"sentinel monitor {MASTER} 127.0.0.1 {master.port} 1",
            f"sentinel down-after-milliseconds {MASTER} {PATIENT_MS}",
            f"sentinel failover-timeout {MASTER} 5000",
            *([f"sentinel auth-pass {MASTER} {password}"] if password else []),
            *([f"requirepass {sentinel_password}"] if sentinel_password else []),
        ]
        port = stack.enter_context(_sentinel(lines))
        client = _sentinel_client(port, sentinel_password)
        until(lambda: _sees_both(client), "the sentinel sees master and replica")
        yield WatchedPair(master, replica, port, sentinel_password)


def _sentinel_client(port: int, password: str) -> Any:
    return redis.Redis(port=port, password=password or None, socket_timeout=PATIENCE_S)


def _sees_both(client: Any) -> bool:
    try:
        return int(client.sentinel_master(MASTER)["num-slaves"]) == 1
    except redis.RedisError:
        return False


@contextmanager
def _sentinel(lines: list[str]) -> Iterator[int]:
    with tempfile.TemporaryDirectory(prefix="tg-") as folder:
        port = free_port()
        file = Path(folder) / "sentinel.conf"
        head = [f"port {port}", "bind 127.0.0.1", f"dir {folder}", f"logfile {folder}/log"]
        file.write_text("\n".join([*head, *lines]) + "\n")
        process = subprocess.Popen(["redis-server", str(file), "--sentinel"])
        try:
            yield port
        finally:
            process.kill()
            process.wait()
