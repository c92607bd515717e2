"""Whatever callers send, spans are made of it: nothing falls over, and nothing grows."""

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from tollgate.serve.ratelimit.codec.answers import response_bytes
from tollgate.serve.ratelimit.codec.request_text import head_of
from tollgate.serve.ratelimit.fronts.front import BegunCall, ErrorStatus
from tollgate.serve.ratelimit.tracing.decided_calls import (
    MESSAGE_BYTES_MAX,
    Counted,
    DecidedCall,
    RenderedReply,
)
from tollgate.serve.ratelimit.tracing.propagation_headers import (
    TRACE_HEADERS,
    is_declined,
    trace_headers,
)
from tollgate.serve.ratelimit.tracing.span_writer import STORE_SPANS, CallIds, SpanWriter
from tollgate.serve.settings.choices import Backend

IDS = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
WORDS = ("00", "01", "-", "0", "1", "d", "=", ",", ";", "%", "a", "\x00", "é")
PIECES = st.sampled_from([*IDS, *WORDS])
VALUES = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=60)
METADATA = st.lists(st.tuples(st.sampled_from(sorted(TRACE_HEADERS)), VALUES), max_size=8)
REQUESTS = st.binary(max_size=80) | st.binary(max_size=20).map(lambda part: part * 1_000)
REPLIES = st.sampled_from(
    [b"", response_bytes(1, []), ErrorStatus(2, "no"), ErrorStatus(2, "x" * 10_000)]
)
SPAN_BYTES_MAX = 24 * 1024


class Ended(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def drawn(bits: int) -> int:
    return 7


@given(METADATA, REQUESTS, REPLIES, st.sampled_from(["", "no"]))
def test_spans_are_made_of_anything(
    metadata: list[tuple[str, str]], request: bytes, reply: bytes | ErrorStatus, failure: str
) -> None:
    ended, ids = Ended(), CallIds(drawn)
    provider = TracerProvider(id_generator=ids, shutdown_on_exit=False)
    provider.add_span_processor(ended)
    writer = SpanWriter(
        provider.get_tracer("test"), ids, STORE_SPANS[Backend.ACTORS], lambda: 1_000_000.0
    )
    headers = trace_headers(metadata)
    is_declined(headers)
    begun = BegunCall(1, 2, headers, 3.0)
    kept = head_of(request, MESSAGE_BYTES_MAX)
    counted = Counted(3.0, 4.0, failure)
    writer.write(DecidedCall(begun, kept, len(request), reply, counted, 5.0))
    writer.write(RenderedReply(begun, 5.0, 6.0))
    for span in ended.spans:
        assert encode_spans([span]).ByteSize() < SPAN_BYTES_MAX
