"""The sample configuration of Envoy in front of Tollgate, with the sample rules.

Envoy gives Tollgate 20 ms and lets a request pass that was not decided by then. On a busy machine
that happens, so these tests hold for any sequence of decided and undecided requests: what was
decided must be right, and what was not must be counted as an error by Envoy.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import httpx

from tests.support.processes.envoy import EnvoyProcess
from tests.support.processes.tollgate import TollgateProcess
from tests.support.waiting import until

UNDECIDED = -1
REQUESTS_MAX = 2_000
_addresses = count(2)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of Envoy. `limits`: requests per window in seconds, as the header lists them."""

    status: int
    remaining: int
    reset_s: int
    limits: list[tuple[int, int]]
    is_refused_by_envoy: bool


class Visitor:
    """A client with an address of its own, so that the limit per address is not shared."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self.answers: list[Answer] = []

    def ask(self, path: str, method: str = "GET") -> Answer:
        reply = self._client.request(method, path)
        policies = reply.headers.get("x-ratelimit-limit", "")
        answer = Answer(
            status=reply.status_code,
            remaining=int(reply.headers.get("x-ratelimit-remaining", UNDECIDED)),
            reset_s=int(reply.headers.get("x-ratelimit-reset", UNDECIDED)),
            limits=[(int(n), int(w)) for n, w in re.findall(r"(\d+);w=(\d+)", policies)],
            is_refused_by_envoy="x-envoy-ratelimited" in reply.headers,
        )
        assert (answer.status == 429) == answer.is_refused_by_envoy
        assert reply.text == ("" if answer.is_refused_by_envoy else "Hello from the service.\n")
        self.answers.append(answer)
        return answer

    def ask_decided(self, path: str, method: str = "GET") -> Answer:
        """Asks until Tollgate decided in time."""
        for _ in range(REQUESTS_MAX):
            answer = self.ask(path, method)
            if answer.remaining != UNDECIDED:
                return answer
        raise AssertionError(f"Tollgate decided nothing in time, of {REQUESTS_MAX} requests")

    def ask_until(self, paths: Iterable[str], is_enough: Callable[[Answer], bool]) -> Answer:
        """Asks for one path after the other until an answer is enough."""
        for _, path in zip(range(REQUESTS_MAX), paths, strict=False):
            answer = self.ask(path)
            if is_enough(answer):
                return answer
        raise AssertionError(f"not among {len(self.answers)} answers: {self.answers[-5:]}")


@contextmanager
def visitor(envoy: EnvoyProcess) -> Iterator[Visitor]:
    # Every address below 127.0.0.0/8 is this machine.
    transport = httpx.HTTPTransport(local_address=f"127.0.0.{next(_addresses)}")
    with httpx.Client(base_url=envoy.url, transport=transport, timeout=20) as client:
        yield Visitor(client)


def is_refused(answer: Answer) -> bool:
    return answer.status == 429


def assert_counted_down(answers: list[Answer], limit: int, by: int = 1) -> None:
    """What was decided is what a counter gives that begins anew with every window.

    A request that was not decided in time may have been counted, then or a little later.
    """
    level = limit
    undecided = 0
    for answer in answers:
        if answer.remaining == UNDECIDED:
            assert answer.status == 200
            undecided += 1
            continue
        assert answer.remaining == 0 or not is_refused(answer), answers
        now = -by if is_refused(answer) else answer.remaining
        in_this_window, in_the_next = max(level - by, -by), limit - by
        missing = {in_this_window - now, in_the_next - now}
        assert missing & set(range(0, undecided * by + 1, by)), (level, answer, answers)
        level = now


def test_requests_over_the_limit_get_429_with_headers(envoy: EnvoyProcess) -> None:
    # The query does not open another counter.
    paths = (f"/limited?page={page}" for page in count())
    with visitor(envoy) as client:
        refused = client.ask_until(paths, is_refused)
        assert refused.limits == [(10, 1), (3, 60)]
        assert refused.remaining == 0
        assert 1 <= refused.reset_s <= 60
        assert_counted_down(client.answers, 3)


def test_requests_pass_again_in_the_next_window(envoy: EnvoyProcess) -> None:
    errors_before = envoy.statistic("cluster.service.ratelimit.error")
    with visitor(envoy) as client:
        for _ in range(2):
            refused = client.ask_until(iter(lambda: "/free", ""), is_refused)
            assert refused.limits == [(10, 1)]  # of the address; the path is unlimited
            assert refused.reset_s == 1
            client.ask_until(iter(lambda: "/free", ""), lambda answer: answer.remaining > 0)
        assert_counted_down(client.answers, 10)
        undecided = sum(answer.remaining == UNDECIDED for answer in client.answers)
    assert envoy.statistic("cluster.service.ratelimit.error") - errors_before == undecided


def test_a_limit_of_zero_refuses_everything(envoy: EnvoyProcess) -> None:
    with visitor(envoy) as client:
        refused = client.ask_decided("/closed")
        assert is_refused(refused)
        assert refused.limits == [(10, 1), (0, 86_400)]


def test_shadow_mode_refuses_nothing_and_is_counted(
    envoy: EnvoyProcess, debug: httpx.Client
) -> None:
    with visitor(envoy) as client:
        # Whenever the minute turns, one of two windows has more than the three that are allowed.
        answers = [client.ask("/new") for _ in range(8)]
    assert {answer.status for answer in answers} == {200}
    line = re.compile(r"^ratelimit\.service\.rate_limit\.edge\.path_/new\.shadow_mode: [1-9]", re.M)
    until(lambda: line.search(debug.get("/stats").text), "the overridden refusal is counted")


def test_a_wildcard_limits_each_path_for_itself(envoy: EnvoyProcess) -> None:
    with visitor(envoy) as client:
        for name in ("a.png", "b.png"):
            assert client.ask_decided(f"/images/{name}").limits == [(10, 1), (50, 1)]
        assert client.ask_decided("/images").limits == [(10, 1)]


def test_a_shared_wildcard_is_one_counter_and_a_request_may_weigh_more(
    envoy: EnvoyProcess,
) -> None:
    with visitor(envoy) as client:
        paths = (f"/reports/{number}.pdf" for number in count())
        assert client.ask_until(paths, is_refused).limits == [(20, 3_600)]
        assert_counted_down(client.answers, 20, by=5)


def test_deeper_descriptors_meet_deeper_rules(envoy: EnvoyProcess) -> None:
    with visitor(envoy) as client:
        assert client.ask_decided("/orders").limits == [(10, 1), (100, 60)]
        assert client.ask_decided("/orders", "POST").limits == [(10, 1), (100, 60), (10, 60)]


def test_envoy_follows_the_health_of_tollgate(
    tollgate: TollgateProcess, envoy: EnvoyProcess
) -> None:
    assert tollgate.command("status").returncode == 0
    checked = envoy.statistic("cluster.tollgate.health_check.success")
    until(
        lambda: envoy.statistic("cluster.tollgate.health_check.success") > checked,
        "Envoy checks again",
    )
    assert envoy.statistic("cluster.tollgate.health_check.failure") == 0
