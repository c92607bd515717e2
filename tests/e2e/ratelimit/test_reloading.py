"""Rules that change while traffic flows. A rule's limit says which version of it decided a call."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.callers import Call, Traffic, grpc_traffic
from tests.support.processes.tollgate import TollgateProcess
from tests.support.waiting import until

LOADED = "ratelimit.service.config_load_success"
REFUSED = "ratelimit.service.config_load_error"


def rule_text(limit: int) -> str:
    return (
        "domain: reloaded\n"
        "descriptors:\n"
        f"  - {{key: version, rate_limit: {{unit: year, requests_per_unit: {limit}}}}}\n"
    )


def statistic(debug: httpx.Client, name: str) -> int:
    found = [line for line in debug.get("/stats").text.splitlines() if line.startswith(f"{name}: ")]
    assert len(found) == 1, found
    return int(found[0].rpartition(" ")[2])


def await_loads(debug: httpx.Client, loaded: int, refused: int) -> None:
    """Rules decide before they are counted: a front swaps them, and then it says so."""
    until(
        lambda: (statistic(debug, LOADED), statistic(debug, REFUSED)) == (loaded, refused),
        f"{loaded} loads and {refused} refusals are counted",
    )


def decided_under(limit: int) -> Callable[[Call], bool]:
    return lambda call: call.limit == limit


def is_about(subject: str) -> Callable[[Call], bool]:
    return lambda call: call.about == subject


@pytest.fixture
def rule_file(rules: Path, tollgate: TollgateProcess, debug: httpx.Client) -> Iterator[Path]:
    """A file with a domain of its own, in force with the limit 1000000."""
    file = rules / "reloaded.yaml"
    loaded, refused = statistic(debug, LOADED), statistic(debug, REFUSED)
    file.write_text(rule_text(1_000_000))
    until(lambda: "1000000" in rules_in_force(debug), "the new file is in force")
    await_loads(debug, loaded + 1, refused)
    yield file
    file.unlink()
    until(lambda: not rules_in_force(debug), "the file's rules are gone")


def rules_in_force(debug: httpx.Client) -> str:
    lines = debug.get("/rlconfig").text.splitlines()
    return "".join(line for line in lines if line.startswith("reloaded."))


def test_rules_change_under_traffic_and_no_call_fails(
    tollgate: TollgateProcess, rule_file: Path, debug: httpx.Client
) -> None:
    loaded, refused = statistic(debug, LOADED), statistic(debug, REFUSED)
    with grpc_traffic(tollgate.grpc_address, "reloaded", ["version=a", "version=b"]) as traffic:
        traffic.next_call(decided_under(1_000_000), "the first version decides")

        rule_file.write_text(rule_text(2_000_000))
        traffic.next_call(decided_under(2_000_000), "a file edited in place is in force")
        await_loads(debug, loaded + 1, refused)

        draft = rule_file.with_suffix(".draft")
        draft.write_text(rule_text(3_000_000))
        draft.replace(rule_file)
        traffic.next_call(decided_under(3_000_000), "a file replaced by another is in force")
        await_loads(debug, loaded + 2, refused)

        rule_file.write_text(rule_text(4_000_000).replace("year", "fortnight"))
        until(lambda: statistic(debug, REFUSED) == refused + 1, "the broken file is refused")
        assert_only(traffic, 3_000_000)
        assert statistic(debug, LOADED) == loaded + 2

        rule_file.write_text(rule_text(5_000_000))
        traffic.next_call(decided_under(5_000_000), "the mended file is in force")
        await_loads(debug, loaded + 3, refused + 1)
    assert [call for call in traffic.calls if call.error] == []
    for subject in ("version=a", "version=b"):
        calls = [call for call in traffic.calls if call.about == subject]
        limits = [call.limit for call in calls]
        assert sorted(set(limits)) == [1_000_000, 2_000_000, 3_000_000, 5_000_000]
        assert limits == sorted(limits), "no version comes back"
        # A counter survives a change of its limit: every call is one more hit.
        assert [call.limit - call.remaining for call in calls] == list(range(1, len(calls) + 1))


def assert_only(traffic: Traffic, limit: int) -> None:
    """Every thread is decided under this limit, now and a moment later."""
    for subject in ("version=a", "version=b"):
        seen = len(traffic.calls)
        for _ in range(50):
            traffic.next_call(is_about(subject), "calls go on")
        assert {call.limit for call in traffic.calls[seen:]} == {limit}


def test_the_operator_is_told_what_is_wrong(
    tollgate: TollgateProcess, rule_file: Path, debug: httpx.Client
) -> None:
    rule_file.write_text(rule_text(1).replace("year", "fortnight"))
    line = "reloaded.yaml:3: invalid rate limit unit 'fortnight'"
    until(lambda: line in tollgate.output(), "the node's log names file, line and reason")
    rule_file.write_text(rule_text(7))
    until(lambda: "requests_per_unit=7," in rules_in_force(debug), "the mended file is in force")
