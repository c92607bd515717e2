"""What the log may say of a collector."""

import pytest

from tollgate.serve.ratelimit.tracing.collector_texts import (
    COMPLAINT_CHARS_MAX,
    UNREADABLE,
    CollectorSecrets,
    plain_address,
)
from tollgate.serve.settings.rows import MASK

VARIABLES = {
    "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20token-1,x-id=a",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-key=one%0Atwo",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:pass@host:4318/v1?api_key=query-1",
    "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
}


@pytest.mark.parametrize(
    ("address", "plain"),
    [
        ("http://host:4318", "http://host:4318"),
        ("collector:4317", "collector:4317"),
        ("user:pass@collector:4317", "collector:4317"),
        ("https://u:p@host/v1/traces?api_key=x#y", "https://host/v1/traces"),
        ("https://u:p@q@[::1]:4318/v1", "https://[::1]:4318/v1"),
        ("http://u:p/q@host/", UNREADABLE),
        ("http://u:p?q@host/", UNREADABLE),
        ("http://[u:p@host/", UNREADABLE),
    ],
)
def test_an_address_is_told_without_credentials(address: str, plain: str) -> None:
    assert plain_address(address) == plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a gzip of x-id a", "a gzip of x-id a"),
        ("no 'Bearer token-1' here", f"no '{MASK}' here"),
        ("no Bearer%20token-1", f"no {MASK}"),
        ("unknown token-1", f"unknown {MASK}"),
        ("a value 'one\\ntwo'", f"a value '{MASK}'"),
        ("user:pass", MASK),
        ("pass", MASK),
        ("url: /v1?some=other (refused)", f"url: /v1?{MASK} (refused)"),
        ("//another:one@host", f"//{MASK}@host"),
        ("query-1", MASK),
        ("\x1b[31mred\r\n", " [31mred  "),
        ("x" * 10_000, "x" * COMPLAINT_CHARS_MAX),
    ],
)
def test_complaints_are_told_without_secrets(text: str, plain: str) -> None:
    assert CollectorSecrets(VARIABLES).taken_out_of(text) == plain
