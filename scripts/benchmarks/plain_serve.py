"""The plain way to do it, as a baseline: Serve's own gRPC ingress, one actor call per request.

Run as a process of its own; it prints its port when it serves, and ends when its input does.
"""

import os
import sys
from typing import Any

PORT = int(sys.argv[1])
os.environ["RAY_AUTH_MODE"] = "disabled"

import ray  # noqa: E402  (the mode has to be set before)
from ray import serve as ray_serve  # noqa: E402
from ray.serve.config import gRPCOptions  # noqa: E402

from tollgate.serve.ratelimit.codec import messages  # noqa: E402

SERVICER = "scripts.benchmarks.plain_servicer.add_to_server"


@ray.remote(num_cpus=0)
class Counters:
    """Counts by key."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def hit(self, key: str) -> int:
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return count


@ray_serve.deployment(max_ongoing_requests=1_000, ray_actor_options={"num_cpus": 0})
class PlainRateLimit:
    """Every descriptor is a key; the limit is the hot rule's."""

    def __init__(self) -> None:
        self._counters: Any = Counters.remote()  # type: ignore[attr-defined]

    async def ShouldRateLimit(  # noqa: N802  (the method's name on the wire)
        self, request: bytes
    ) -> Any:
        reply = messages.ResponseMessage(overall_code=messages.ResponseMessage.OK)
        for descriptor in messages.RequestMessage.FromString(request).descriptors:
            key = "/".join(f"{entry.key}={entry.value}" for entry in descriptor.entries)
            count = await self._counters.hit.remote(key)
            status = reply.statuses.add(code=messages.ResponseMessage.OK)
            status.limit_remaining = max(0, 4_000_000_000 - count)
        return reply


def main() -> None:
    """Serve until standard input ends."""
    ray.init(include_dashboard=False, object_store_memory=100 * 1024 * 1024, log_to_driver=False)
    ray_serve.start(
        http_options={"host": "127.0.0.1", "port": PORT + 1},
        grpc_options=gRPCOptions(port=PORT, grpc_servicer_functions=[SERVICER]),
    )
    plain: ray_serve.Application = PlainRateLimit.bind()  # type: ignore[attr-defined]
    ray_serve.run(plain, name="plain", route_prefix="/")
    print(PORT, flush=True)
    sys.stdin.read()
    ray_serve.shutdown()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
