"""Each fault of Redis, and what callers are told of it in each failure mode (B10, part A)."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

import pytest

from tests.support.ratelimit.engine import Engine
from tests.support.ratelimit.redis_fronts import redis_front
from tests.support.servers.redis import RedisProcess, redis_process
from tests.support.waiting import until
from tollgate.actors.ratelimit.decision.judge import BACKEND_ERROR
from tollgate.actors.ratelimit.decision.plan import Refusal
from tollgate.actors.ratelimit.decision.policy import FailureMode, Policy
from tollgate.actors.ratelimit.decision.response import RateLimitDecision
from tollgate.actors.ratelimit.rules.descriptors import RateLimitDescriptor, RateLimitRequest

RULES = "{domain: d, descriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 1000}}]}"
QUESTION = RateLimitRequest("d", (RateLimitDescriptor((("k", "v"),)),))
Told = tuple[str, int] | str
Fault = Callable[[RedisProcess], AbstractContextManager[None]]


def told(engine: Engine) -> Told:
    """The code of a call and what remains; or its error."""
    (answer,) = engine.decide(QUESTION)
    if isinstance(answer, Refusal):
        return answer.message
    assert isinstance(answer, RateLimitDecision)
    return ("OK", "OVER_LIMIT")[answer.overall - 1], answer.statuses[0].remaining


def is_counted(engine: Engine) -> bool:
    engine.tallies.drain()
    told(engine)
    return BACKEND_ERROR not in engine.tallies.drain().counts


@contextmanager
def killed(server: RedisProcess) -> Iterator[None]:
    server.kill()
    yield
    server.start()


@contextmanager
def frozen(server: RedisProcess) -> Iterator[None]:
    pid = server.client.info("server")["process_id"]
    os.kill(pid, signal.SIGSTOP)
    yield
    os.kill(pid, signal.SIGCONT)


@contextmanager
def replica(server: RedisProcess) -> Iterator[None]:
    server.client.replicaof("127.0.0.1", 1)
    yield
    server.client.replicaof("no", "one")


@contextmanager
def full(server: RedisProcess) -> Iterator[None]:
    server.client.config_set("maxmemory", "1")
    yield
    server.client.config_set("maxmemory", "0")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (killed, "Connection refused"),
        (frozen, "Timeout reading from socket"),
        (replica, "READONLY You can't write against a read only replica."),
        (full, "OOM command not allowed when used memory > 'maxmemory'."),
    ],
)
def test_the_failure_mode_decides_until_the_fault_is_over(fault: Fault, error: str) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(redis_process("--maxmemory-policy", "noeviction"))
        engines: dict[FailureMode, Engine] = {}
        for mode in FailureMode:
            environment = {"REDIS_URL": server.address, "REDIS_TIMEOUT": "1s"}
            front = stack.enter_context(redis_front(**environment))
            policy = Policy(failure_mode=mode, has_outside_counters=True)
            engine = engines[mode] = front.engine(RULES, policy)
            until(partial(is_counted, engine), "a hit is counted")
        with fault(server):
            answers = {mode: told(engine) for mode, engine in engines.items()}
            assert error in answers.pop(FailureMode.ERROR)
            assert answers == {
                FailureMode.ALLOW: ("OK", 999),
                FailureMode.DENY: ("OVER_LIMIT", 0),
            }
            for engine in engines.values():
                assert engine.tallies.drain().counts[BACKEND_ERROR] == 1
        for engine in engines.values():
            until(partial(is_counted, engine), "hits are counted again")
