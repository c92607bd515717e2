"""From statuses to the overall code, headers and metadata, where a request would be too much."""

from copy import deepcopy

import pytest

from tests.support.ratelimit.engine import planned_hit
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.plan import RequestPlan
from tollgate.actors.ratelimit.decision.policy import HeaderNames
from tollgate.actors.ratelimit.decision.response import (
    OK,
    OVER_LIMIT,
    REMAINING_UNLIMITED,
    UNLIMITED,
    WITHOUT_LIMIT,
    Status,
    dynamic_metadata,
    overall_code,
    response_headers,
)
from tollgate.actors.ratelimit.rules.descriptors import (
    Override,
    RateLimitDescriptor,
    RateLimitRequest,
)

NAMES = HeaderNames()


def status(
    code: int = OK, remaining: int = 5, *, is_quota: bool = False, limit: int = 10
) -> Status:
    return Status(code, remaining, 20, planned_hit(is_quota=is_quota, limit=limit))


def plan_with(passing_quotas: int) -> RequestPlan:
    return RequestPlan((), (), passing_quotas, "", 0, None)


FINE, OVER = status(), status(OVER_LIMIT, 0)
QUOTA_FINE, QUOTA_OVER = status(is_quota=True), status(OVER_LIMIT, 0, is_quota=True)


@pytest.mark.parametrize(
    ("statuses", "passing_quotas", "expected"),
    [
        ([], 0, OK),
        ([WITHOUT_LIMIT, UNLIMITED], 0, OK),
        ([FINE], 0, OK),
        ([OVER], 0, OVER_LIMIT),
        ([OVER, QUOTA_FINE], 0, OVER_LIMIT),
        ([QUOTA_OVER, OVER, FINE], 0, OVER_LIMIT),
        ([QUOTA_OVER], 0, OVER_LIMIT),
        ([QUOTA_OVER, FINE, WITHOUT_LIMIT, UNLIMITED], 0, OVER_LIMIT),
        ([QUOTA_OVER, QUOTA_FINE], 0, OK),
        ([QUOTA_OVER, QUOTA_OVER], 0, OVER_LIMIT),
        ([QUOTA_OVER, WITHOUT_LIMIT], 1, OK),
        ([WITHOUT_LIMIT], 1, OK),
        ([UNLIMITED], 0, OK),
    ],
)
def test_quotas_excuse_each_other_and_nothing_else(
    statuses: list[Status], passing_quotas: int, expected: int
) -> None:
    assert overall_code(plan_with(passing_quotas), statuses) == expected


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param([WITHOUT_LIMIT, UNLIMITED], None, id="no limit"),
        pytest.param([status(limit=1), status(limit=2)], 1, id="the first of equals"),
        pytest.param(
            [status(remaining=3, limit=1), status(remaining=2, limit=2)], 2, id="the fewest"
        ),
        pytest.param(
            [status(OVER_LIMIT, 0, limit=1), status(OVER_LIMIT, 0, limit=2)], 2, id="last over"
        ),
        pytest.param(
            [status(OVER_LIMIT, 0, limit=1), status(remaining=0, limit=2)],
            1,
            id="over before shadowed",
        ),
        pytest.param(
            [status(OVER_LIMIT, 0, is_quota=True, limit=1), status(remaining=0, limit=2)],
            1,
            id="a quota that is over competes like any other",
        ),
        pytest.param(
            [status(remaining=REMAINING_UNLIMITED, limit=REMAINING_UNLIMITED)],
            None,
            id="all of the largest limit remains: the reference starts from there",
        ),
    ],
)
def test_the_descriptor_that_headers_are_about(
    statuses: list[Status], expected: int | None
) -> None:
    headers = response_headers(NAMES, statuses)
    assert [name for name, _ in headers] == (
        [] if expected is None else [NAMES.limit, NAMES.remaining, NAMES.reset]
    )
    if expected is not None:
        assert headers[0][1] == str(expected)


def test_metadata_is_copied_at_every_level() -> None:
    first: dict[str, object] = {"map": {"deep": {"x": 1}}, "list": [{"y": 2}], "pair": ({"z": 3},)}
    second: dict[str, object] = {"map": {"deep": {"added": 1}, "more": 2}, "list": [9]}
    rules = [first, second]
    before = deepcopy(rules)
    request = RateLimitRequest("d", (RateLimitDescriptor((("k", "v"),)),))
    statuses = [Status(OK, 1, 20, planned_hit(metadata=each)) for each in rules]

    merged = dynamic_metadata(request, statuses)["metadata"]

    expected = {
        "map": {"deep": {"x": 1, "added": 1}, "more": 2},
        "list": [{"y": 2}],
        "pair": [{"z": 3}],
    }
    assert merged == expected
    assert isinstance(merged, dict)
    merged["map"]["deep"]["x"] = merged["list"][0]["y"] = merged["pair"][0]["z"] = "changed"
    assert rules == before


def test_metadata_of_what_is_over_or_has_no_limit_is_left_out() -> None:
    request = RateLimitRequest("d", (RateLimitDescriptor(()),) * 3)
    over = Status(OVER_LIMIT, 0, 20, planned_hit(metadata={"name": "over"}))
    assert dynamic_metadata(request, [over, WITHOUT_LIMIT, UNLIMITED]) == {
        "domain": "d",
        "descriptors": [{"entries": []}] * 3,
    }


def test_empty_metadata_is_no_metadata() -> None:
    request = RateLimitRequest("d", (RateLimitDescriptor(()),))
    assert "metadata" not in dynamic_metadata(request, [Status(OK, 1, 1, planned_hit(metadata={}))])


def test_what_the_request_brought_along_is_quoted() -> None:
    descriptor = RateLimitDescriptor((("k", "v"), ("k", "")), Override(7, Unit.WEEK), 0)
    assert dynamic_metadata(RateLimitRequest("d", (descriptor,), 4), []) == {
        "domain": "d",
        "descriptors": [
            {"entries": ["k=v", "k="], "limit": "requests_per_unit:7 unit:WEEK", "hitsAddend": 0}
        ],
        "hitsAddend": 4,
    }
