"""The headers by which callers hand on a trace: W3C's, and Zipkin's (B3).

Here is only what has to be known of them while a call waits: whether its trace begins with it, and
whether its caller wants no spans of it. The rest is read by OpenTelemetry, later. Baggage is not
read at all: nothing would come of it, and to read what is no baggage costs more than the call.
"""

import re

from tollgate.serve.ratelimit.fronts.front import Metadata

PARENT_HEADERS = frozenset(
    ("traceparent", "b3", "x-b3-traceid", "x-b3-spanid", "x-b3-sampled", "x-b3-flags")
)
TRACE_HEADERS = PARENT_HEADERS | {"tracestate", "x-b3-parentspanid"}
# What is longer is no header of a trace, or more than anybody needs.
HEADERS_MAX = 16
HEADER_CHARS_MAX = 1_024

TRACE_BITS, SPAN_BITS = 128, 64
DRAWN_BITS = 64  # of a trace's id are compared with the rate
# Ids are not 0; there is no version ff, and version 00 ends with its flags.
_TRACEPARENT = re.compile(
    r"(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(-.*)?"
)
_B3_IDS = re.compile(r"(?!0+-)([0-9a-fA-F]{16}){1,2}-(?!0{16})[0-9a-fA-F]{16}")
_SAMPLED = 1
_B3_DECLINES = ("0", "false", "False")

Headers = tuple[tuple[str, str], ...]


def trace_headers(metadata: Metadata) -> Headers:
    """What the metadata of a call says about its trace, within bounds."""
    found = [
        (name, value)
        for name, value in metadata
        if name in TRACE_HEADERS and isinstance(value, str) and len(value) <= HEADER_CHARS_MAX
    ]
    return tuple(found[:HEADERS_MAX])


def is_root(headers: Headers) -> bool:
    """True when the trace begins with this call: its caller names no parent, or none that can be
    read."""
    said = dict(reversed(headers))  # (the first of a name counts)
    if _TRACEPARENT.fullmatch(said.get("traceparent", "").strip(" \t")):
        return False
    if said.get("b3"):
        ids = "-".join(said["b3"].split("-")[:2])
    else:
        ids = f"{said.get('x-b3-traceid', '')}-{said.get('x-b3-spanid', '')}"
    return _B3_IDS.fullmatch(ids) is None


def is_declined(headers: Headers) -> bool:
    """True when the caller has decided that there are to be no spans of the call."""
    said = dict(reversed(headers))  # (the first of a name counts)
    parent = _TRACEPARENT.fullmatch(said.get("traceparent", "").strip(" \t"))
    if parent is not None:
        return not int(parent[1], 16) & _SAMPLED
    if "b3" in said:
        parts = said["b3"].split("-")
        return (parts[2] if len(parts) > 2 else parts[0] if len(parts) == 1 else "") == "0"
    return said.get("x-b3-sampled") in _B3_DECLINES and said.get("x-b3-flags") != "1"


def drawn_below(rate: float) -> int:
    """The bound of DRAWN_BITS of a trace's id below which it is among those of the rate. A trace
    that begins here is judged by it, by OpenTelemetry's sampler as well."""
    return round(rate * (1 << DRAWN_BITS))
