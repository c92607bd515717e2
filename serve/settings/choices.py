"""The closed sets among the values of settings, with the parsers that know their words."""

from enum import Enum, IntEnum

from tollgate.actors.ratelimit.decision.policy import FailureMode
from tollgate.serve.settings.values import one_of


class GrpcFront(Enum):
    """The implementation that listens for gRPC; AUTO leaves it to the other settings."""

    AUTO = "auto"
    NATIVE = "native"
    GRPCIO = "grpcio"


class LogLevel(IntEnum):
    """The reference's levels, with the numbers that Python's logging compares."""

    TRACE = 5
    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40
    FATAL = 50
    PANIC = 60


class LogFormat(Enum):
    """The layout of a line of the log."""

    TEXT = "text"
    JSON = "json"


class RuleSource(Enum):
    """The source of rules (B20)."""

    FILE = "FILE"
    XDS = "GRPC_XDS_SOTW"


class ErrorStatusCodes(Enum):
    """The statuses of errors on the wire (part A, "Errors on the wire")."""

    COMPATIBLE = "compatible"
    PRECISE = "precise"


class Backend(Enum):
    """The owner of the counters (part A, "Backends")."""

    ACTORS = "actors"
    KVSTORE = "kvstore"
    ALTCACHE = "altcache"


class Counting(Enum):
    """The place where a hit is counted ("Where hits are counted" in docs/ratelimit.md)."""

    LENT = "lent"
    DIRECT = "direct"


class WhenFull(Enum):
    """The fate of a new counter when there is no room for it (part A, "Bounds")."""

    EVICT = "evict"
    REFUSE = "refuse"


class Transport(Enum):
    """The destination of statistics (B19); only DISABLED hides them from the debug port."""

    DISABLED = "disabled"
    STATSD = "statsd"
    AGENT_STATSD = "agent_statsd"
    PULLMETRICS = "pullmetrics"
    STDOUT = "stdout"


class TracingProtocol(Enum):
    """The form of OTLP in which spans are sent (B21)."""

    HTTP = "http"
    GRPC = "grpc"


class StatsdProtocol(Enum):
    """The way to a statsd server. (DogStatsD agents listen for datagrams alone.)"""

    TCP = "tcp"
    UDP = "udp"


class SmtpTls(Enum):
    """The point at which TLS begins on the way to the mail server."""

    NONE = "none"
    STARTTLS = "starttls"
    TLS = "tls"


grpc_front = one_of({front.value: front for front in GrpcFront})
log_level = one_of(
    {level.name.lower(): level for level in LogLevel} | {"warning": LogLevel.WARN},
    ignores_case=True,
)
log_format = one_of({layout.value: layout for layout in LogFormat})
rule_source = one_of({source.value: source for source in RuleSource})
failure_mode = one_of({mode.value: mode for mode in FailureMode})
error_status_codes = one_of({codes.value: codes for codes in ErrorStatusCodes})
backend = one_of(
    {kind.value: kind for kind in Backend}
    | {"redis": Backend.KVSTORE, "memcache": Backend.ALTCACHE}
)
counting_shadow = one_of(
    {"none": None}
    | {kind.value: kind for kind in Backend}
    | {"redis": Backend.KVSTORE, "memcache": Backend.ALTCACHE}
)
counting = one_of({place.value: place for place in Counting})
when_full = one_of({fate.value: fate for fate in WhenFull})
tracing_protocol = one_of({protocol.value: protocol for protocol in TracingProtocol})
statsd_protocol = one_of(
    {protocol.value: protocol for protocol in StatsdProtocol}, ignores_case=True
)
smtp_tls = one_of({mode.value: mode for mode in SmtpTls})
