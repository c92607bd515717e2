"""The rows about traces of calls, and the collector that they go to (B21; TRACING_ENABLED)."""
# ruff: noqa: RUF009  (`setting` makes a dataclass field, not a default that is computed once)

from dataclasses import dataclass

from tollgate.serve.settings.choices import TracingProtocol, tracing_protocol
from tollgate.serve.settings.rows import setting
from tollgate.serve.settings.values import boolean, number, text


@dataclass(frozen=True, slots=True)
class TracingSettings:
    """Traces of calls (B21): the share that have one, and who they are said to come from.

    Where spans go to is said by OpenTelemetry's own variables, which are handed on as they are.
    """

    is_on: bool = setting("TRACING_ENABLED", boolean, "false", "send spans over OTLP")
    protocol: TracingProtocol = setting(
        "TRACING_EXPORTER_PROTOCOL", tracing_protocol, "http", "how they are sent"
    )
    service_name: str = setting("TRACING_SERVICE_NAME", text, "RateLimit", "service.name")
    service_namespace: str = setting("TRACING_SERVICE_NAMESPACE", text, "", "service.namespace")
    service_instance_id: str = setting(
        "TRACING_SERVICE_INSTANCE_ID",
        text,
        "",
        "service.instance.id; empty: a random UUID for each front",
    )
    sampling_rate: float = setting(
        "TRACING_SAMPLING_RATE", number(0, 1), "1", "share of the traces that begin here"
    )
