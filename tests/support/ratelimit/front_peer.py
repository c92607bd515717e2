"""A front, and a JSON door, in a process of their own, at ports that they share.

    python -m tests.support.ratelimit.front_peer FRONT GRPC_PORT JSON_PORT SOCKET_DIR

says "ready" when both listen, and ends with its standard input.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.ratelimit.grpc_peers import Decisions, World
from tests.support.ratelimit.json_port import a_service
from tollgate.actors.ratelimit.decision.response import OVER_LIMIT
from tollgate.serve.ratelimit.codec.answers import response_bytes
from tollgate.serve.ratelimit.fronts.front import ListenAddress, WireReply
from tollgate.serve.ratelimit.json_door.exchange import JsonExchange
from tollgate.serve.ratelimit.json_door.server import JsonDoor
from tollgate.serve.settings.choices import GrpcFront

ROOT = Path(__file__).resolve().parents[3]
# What it answers, and nobody else: over gRPC, and as a status of HTTP.
ANSWER = b"the peer's"
REFUSED = 429


def refusing(payloads: Sequence[bytes]) -> list[WireReply]:
    return [response_bytes(OVER_LIMIT, [])] * len(payloads)


def shared(port: int) -> ListenAddress:
    return ListenAddress("127.0.0.1", port, is_port_shared=True)


@contextmanager
def front_peer(
    choice: GrpcFront, grpc_port: int, json_port: int, socket_dir: Path
) -> "Iterator[subprocess.Popen[bytes]]":
    """The process, listening; whoever ends it earlier may."""
    words = ["-m", __name__, choice.value, str(grpc_port), str(json_port), str(socket_dir)]
    process = subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    choice, grpc_port, json_port, socket_dir = sys.argv[1:]
    world = World(Decisions(lambda payloads: [ANSWER] * len(payloads)))
    front = world.front(GrpcFront(choice), Path(socket_dir), shared(int(grpc_port)))
    front.start()
    exchange = JsonExchange(world.health, is_precise=True)
    JsonDoor(shared(int(json_port)), a_service(refusing, world.health), exchange).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
