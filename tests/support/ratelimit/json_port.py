"""The JSON door on a free port of its own."""

from collections.abc import Iterator
from contextlib import contextmanager

from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.ratelimit.fronts.front import DecideBatch, ListenAddress, Service
from tollgate.serve.ratelimit.health import Health
from tollgate.serve.ratelimit.json_door.exchange import JsonExchange
from tollgate.serve.ratelimit.json_door.server import JsonDoor

DRAIN_GRACE_S = 2.0
FREE_PORT = ListenAddress(host="127.0.0.1", port=0)


@contextmanager
def json_port(
    decide_batch: DecideBatch,
    exchange: JsonExchange,
    health: Health,
    listen: ListenAddress = FREE_PORT,
) -> Iterator[JsonDoor]:
    """Opens it, and drains it at the end."""
    service = Service(
        decide_batch=decide_batch,
        health=health,
        clock=SystemClock(),
        observe=lambda method, calls, seconds: None,
        on_error=lambda error: None,
        count=lambda name, by: None,
    )
    door = JsonDoor(listen, service, exchange)
    door.start()
    try:
        yield door
    finally:
        door.drain(DRAIN_GRACE_S)
