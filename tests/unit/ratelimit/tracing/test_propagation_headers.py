"""What a call says of its trace, as far as it is looked at while the call waits."""

import pytest
from opentelemetry.trace import get_current_span

from tollgate.serve.ratelimit.fronts.front import BegunCall
from tollgate.serve.ratelimit.tracing.propagation_headers import (
    HEADER_CHARS_MAX,
    HEADERS_MAX,
    is_declined,
    is_root,
    trace_headers,
)
from tollgate.serve.ratelimit.tracing.span_writer import parent_context

IDS = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
SEVERAL = [("x-b3-traceid", IDS[:32]), ("x-b3-spanid", IDS[33:])]


@pytest.mark.parametrize(
    ("headers", "is_so"),
    [
        ([], False),
        ([("baggage", "a=b")], False),
        ([("traceparent", f"00-{IDS}-01")], False),
        ([("traceparent", f"00-{IDS}-03")], False),
        ([("traceparent", f"00-{IDS}-00")], True),
        ([("traceparent", f"00-{IDS}-02")], True),
        ([("traceparent", f"01-{IDS}-00-of a later version")], True),
        ([("traceparent", f"00-{IDS}-00-of no version")], False),
        ([("traceparent", f"00-{IDS}")], False),
        ([("traceparent", f"00-{IDS}-xx")], False),
        ([("traceparent", "")], False),
        # The first of a name, and W3C's, count.
        ([("traceparent", f"00-{IDS}-00"), ("traceparent", f"00-{IDS}-01")], True),
        ([("b3", "0"), ("traceparent", f"00-{IDS}-01")], False),
        ([("b3", f"{IDS}-0"), ("traceparent", "nonsense")], True),
        ([("b3", "0")], True),
        ([("b3", "1")], False),
        ([("b3", "d")], False),
        ([("b3", f"{IDS}-0")], True),
        ([("b3", f"{IDS}-0-05e3ac9a4f6e3b90")], True),
        ([("b3", f"{IDS}-1")], False),
        ([("b3", IDS)], False),
        ([*SEVERAL, ("x-b3-sampled", "0")], True),
        ([*SEVERAL, ("x-b3-sampled", "false")], True),
        ([*SEVERAL, ("x-b3-sampled", "0"), ("x-b3-flags", "1")], False),
        ([*SEVERAL, ("x-b3-sampled", "1")], False),
        (SEVERAL, False),
        ([("x-b3-sampled", "0")], True),
    ],
)
def test_a_caller_may_decline(headers: list[tuple[str, str]], is_so: bool) -> None:
    assert is_declined(tuple(headers)) is is_so


def test_a_trace_begins_here_unless_a_caller_says_otherwise() -> None:
    assert is_root(())
    assert is_root((("tracestate", "a=b"),))
    for name, value in (
        ("traceparent", f"00-{IDS}-00"),
        ("traceparent", f" 00-{IDS}-01\t"),
        ("traceparent", f"01-{IDS}-01-of a later version"),
        ("b3", IDS),
        ("b3", f"{IDS}-d"),
        ("b3", f"{IDS[16:]}-1".upper()),
    ):
        assert not is_root(((name, value),)), value
    assert not is_root((("traceparent", "nonsense"), *SEVERAL))


@pytest.mark.parametrize(
    "headers",
    [
        [("traceparent", "whatever")],
        [("traceparent", f"00-{IDS}-01-of no version")],
        [("traceparent", f"ff-{IDS}-01")],
        [("traceparent", f"00-{'0' * 32}-{IDS[33:]}-01")],
        [("traceparent", f"00-{IDS[:32]}-{'0' * 16}-01")],
        [("b3", "1")],
        [("b3", f"{'0' * 16}-{IDS[33:]}-1")],
        [("b3", "whatever"), *SEVERAL],
        [("x-b3-sampled", "1")],
        SEVERAL[:1],
        [("traceparent", "whatever"), ("traceparent", f"00-{IDS}-01")],
    ],
)
def test_a_parent_that_cannot_be_read_is_none(headers: list[tuple[str, str]]) -> None:
    assert is_root(tuple(headers))
    # OpenTelemetry finds none either: nothing is lost that somebody waits for.
    begun = BegunCall(1, 2, tuple(headers), 0.0)
    assert not get_current_span(parent_context(begun)).get_span_context().is_valid


def test_headers_are_kept_within_bounds() -> None:
    long, binary = "x" * (HEADER_CHARS_MAX + 1), b"bytes"
    metadata = [
        ("user-agent", "somebody"),
        ("b3", "1"),
        ("traceparent", long),
        ("tracestate", binary),
        ("baggage", "a=b"),
        ("tracestate", "a=b"),
    ]
    assert trace_headers(metadata) == (("b3", "1"), ("tracestate", "a=b"))
    assert len(trace_headers([("tracestate", "a=b")] * 100)) == HEADERS_MAX
