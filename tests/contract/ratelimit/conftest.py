"""Both gRPC fronts, one after the other, with a world around them and a caller in front."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.ratelimit.grpc_peers import Caller, World, caller, end
from tollgate.serve.ratelimit.fronts.front import Front, ListenAddress
from tollgate.serve.settings.choices import GrpcFront

# Makes a front in a world, listening at a free port unless a door is given.
Open = Callable[..., Front]


@pytest.fixture(params=[GrpcFront.NATIVE, GrpcFront.GRPCIO], ids=lambda choice: choice.value)
def choice(request: pytest.FixtureRequest) -> GrpcFront:
    assert isinstance(request.param, GrpcFront)
    return request.param


@pytest.fixture
def socket_dir() -> Iterator[Path]:
    """A folder with a short name: the path of a unix socket has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="tg-") as name:
        yield Path(name)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def open_front(choice: GrpcFront, world: World, socket_dir: Path) -> Iterator[Open]:
    fronts: list[Front] = []

    def opened(door: ListenAddress | None = None) -> Front:
        front = world.front(choice, socket_dir, door)
        front.start()
        fronts.append(front)
        return front

    yield opened
    world.decisions.release()
    for front in fronts:
        end(front)


@pytest.fixture
def front(open_front: Open) -> Front:
    return open_front()


@pytest.fixture
def peer(front: Front) -> Iterator[Caller]:
    with caller(front.address) as connected:
        yield connected
