"""Two servers for all tests of this folder, and a counter for each of them."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.support.ratelimit.counting_in_memcached import counting_in
from tests.support.servers.memcached import Memcached, memcached
from tollgate.serve.ratelimit.backends.memcached import store
from tollgate.serve.ratelimit.backends.memcached.counters import MemcachedCounters

_names = count()


@pytest.fixture(autouse=True)
def _longest_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """No item expires while a loaded machine is busy with something else."""
    monkeypatch.setattr(store, "randbelow", lambda upper: upper - 1)


@pytest.fixture(scope="package")
def server() -> Iterator[Memcached]:
    with memcached() as running:
        yield running


@pytest.fixture(scope="package")
def second() -> Iterator[Memcached]:
    with memcached() as running:
        yield running


@pytest.fixture
def counters(server: Memcached) -> Iterator[MemcachedCounters]:
    with counting_in({"MEMCACHE_HOST_PORT": server.address}) as opened:
        yield opened


@pytest.fixture
def name() -> str:
    """A counter that no other test has."""
    return f"d_k_{next(_names)}"
