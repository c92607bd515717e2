"""`scripts/bench planning`: the cost of a request in the front, planned and decided.

Microseconds of CPU, the best of several rounds that take turns, and multiples of protobuf's parse
of the same bytes, which hold on other machines too. There is no network and no Ray here: counters
are in the same process. And the time that one call waits while another thread decides batches of
1,024 new ones, with a thread's turn as long as it is in fronts, and with Python's own.
"""

import sys
import time
from collections.abc import Callable, Sequence
from itertools import count
from threading import Event, Thread

import click
from rich.console import Console
from rich.table import Table

from tests.support.manual_clock import ManualClock
from tollgate.actors.kernel.garbage_collection import spare_what_is_there
from tollgate.actors.ratelimit.counting.counters import LocalCounters
from tollgate.actors.ratelimit.counting.routes import spread_over
from tollgate.actors.ratelimit.decision.decider import Decider
from tollgate.actors.ratelimit.decision.planner import RequestPlanner
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.rules.rule_file import RuleFile
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.codec.answers import current_limit_bytes
from tollgate.serve.ratelimit.codec.messages import RequestMessage
from tollgate.serve.ratelimit.deployment import TURN_S
from tollgate.serve.ratelimit.fronts.front import BATCH_MAX
from tollgate.serve.ratelimit.replies import decoded_request, encoded_decision

RULES = """\
domain: edge
descriptors:
  - {key: client, rate_limit: {unit: hour, requests_per_unit: 4000000000}}
  - key: path
    value: /checkout
    rate_limit: {unit: minute, requests_per_unit: 100}
    descriptors:
      - {key: address, rate_limit: {unit: minute, requests_per_unit: 10}}
  - {key: path, value: /reports/*, rate_limit: {unit: hour, requests_per_unit: 20}}
"""
REQUESTS = 4_096
BATCHES = (1, 16, 128, 1024)
NEW_BATCHES = (1, 1024)
BUSY_BATCHES = 60

Entries = tuple[tuple[str, str], ...]
Work = Callable[[Sequence[bytes]], object]


def _client(number: int) -> Entries:
    return (("client", f"visitor-{number}"),)


SHAPES: dict[str, Callable[[int], list[Entries]]] = {
    "one descriptor": lambda n: [_client(n)],
    "two descriptors": lambda n: [_client(n), _client(-n)],
    "ten descriptors": lambda n: [_client(n * 10 + i) for i in range(10)],
    "two entries, by value": lambda n: [(("path", "/checkout"), ("address", f"10.0.{n}"))],
    "one entry, by pattern": lambda n: [(("path", f"/reports/{n}"),)],
}


def message(descriptors: Sequence[Entries]) -> bytes:
    request = RequestMessage(domain="edge")
    for entries in descriptors:
        descriptor = request.descriptors.add()
        for key, value in entries:
            descriptor.entries.add(key=key, value=value)
    return bytes(request.SerializeToString())


def planner() -> RequestPlanner:
    return RequestPlanner(
        load_rules([RuleFile("edge.yaml", RULES)], merge_domains=False),
        policy=Policy(),
        route=spread_over(2),
        tallies=Tallies("bench"),
        decode=decoded_request,
        render_limit=current_limit_bytes,
    )


def decider() -> Decider:
    made = Decider(
        policy=Policy(),
        store=LocalCounters(2),
        tallies=Tallies("bench"),
        clock=ManualClock(1_000_000),
        decode=decoded_request,
        render_limit=current_limit_bytes,
        encode=encoded_decision,
    )
    made.use_rules(load_rules([RuleFile("edge.yaml", RULES)], merge_domains=False))
    return made


def in_batches(work: Work, size: int) -> Work:
    def run(payloads: Sequence[bytes]) -> None:
        for start in range(0, len(payloads), size):
            work(payloads[start : start + size])

    return run


def parse_all(payloads: Sequence[bytes]) -> None:
    for payload in payloads:
        RequestMessage.FromString(payload)


def best_us(work: Work, payloads: Sequence[bytes], best: float) -> float:
    """Microseconds of CPU per request, this time or the best before."""
    started_s = time.thread_time()
    work(payloads)
    return min(best, (time.thread_time() - started_s) / len(payloads) * 1e6)


def measured(shape: Callable[[int], list[Entries]], rounds: int) -> dict[str, float]:
    """The cost of each kind of work on requests of one shape."""
    numbers = count()
    known = [message(shape(next(numbers))) for _ in range(REQUESTS)]
    deciding = decider()
    works: dict[str, Work] = {"parse": parse_all, "plan, new": planner().plan_all}
    works |= {f"decide {size} new": in_batches(deciding.decide_batch, size) for size in NEW_BATCHES}
    works |= {f"decide {size} known": in_batches(deciding.decide_batch, size) for size in BATCHES}
    deciding.decide_batch(known)
    costs = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            is_new = name.endswith("new")
            payloads = [message(shape(next(numbers))) for _ in known] if is_new else known
            costs[name] = best_us(work, payloads, costs[name])
    return costs


def waits_ms(turn_s: float) -> list[float]:
    """How long each call took, one after the other, beside BUSY_BATCHES batches of new ones."""
    deciding, numbers, shape = decider(), count(), SHAPES["one descriptor"]
    one, *others = (message(shape(next(numbers))) for _ in range(BUSY_BATCHES * BATCH_MAX + 1))
    deciding.decide_batch([one])
    is_over, waited = Event(), list[float]()

    def call() -> None:
        while not is_over.wait(0.001):
            begun_s = time.perf_counter()
            deciding.decide_batch([one])
            waited.append((time.perf_counter() - begun_s) * 1e3)

    before_s = sys.getswitchinterval()
    sys.setswitchinterval(turn_s)
    caller = Thread(target=call)
    caller.start()
    in_batches(deciding.decide_batch, BATCH_MAX)(others)
    is_over.set()
    caller.join()
    sys.setswitchinterval(before_s)
    return sorted(waited)


@click.command()
@click.option("--rounds", default=7, help="Rounds that take turns; the best of each counts.")
def planning(rounds: int) -> None:
    """Cost of planning and deciding requests whose bytes are new, and of those that are known."""
    spare_what_is_there()  # as fronts do
    table = Table(title="µs of CPU per request (multiples of protobuf's parse)")
    table.add_column("work")
    costs = {name: measured(shape, rounds) for name, shape in SHAPES.items()}
    for name in costs:
        table.add_column(name, justify="right")
    for work in next(iter(costs.values())):
        table.add_row(
            work,
            *(f"{each[work]:.2f} ({each[work] / each['parse']:.1f})" for each in costs.values()),
        )
    console = Console(width=140)
    console.print(table)
    for turn_s in (TURN_S, sys.getswitchinterval()):
        waited = waits_ms(turn_s)
        half, most = waited[len(waited) // 2], waited[len(waited) * 99 // 100]
        console.print(
            f"beside batches of {BATCH_MAX} new ones, turns of {turn_s * 1e3:g} ms: a call takes "
            f"{half:.2f} ms (median), {most:.2f} (p99), {waited[-1]:.2f} (longest of {len(waited)})"
        )
