"""The meaning of each variable of a file: the setting it is, its value as understood, or why not.

means     a setting, with a value that is taken
idle      a setting that has no effect beside the others
ignored   a variable that is for somebody else
unknown   a variable that nothing reads
open      its value is not in the file
refused   a value, or a line, that a start refuses
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from tollgate.serve.commands.environment.conditions import missing_condition
from tollgate.serve.commands.environment.variable_file import OddLine, Variable
from tollgate.serve.settings import Settings, SettingsError
from tollgate.serve.settings.choices import GrpcFront
from tollgate.serve.settings.environment import OTHER_OTLP_VARIABLES
from tollgate.serve.settings.outside.mogrifiers import mogrifier_rows
from tollgate.serve.settings.rows import Row, rows_of
from tollgate.serve.settings.table import GROUPS, OTLP_PREFIX, TABLE
from tollgate.serve.settings.values import Address, BadValueError

LIKENESS_MIN = 0.75
FOREIGN = {
    ("GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOTRACEBACK", "GORACE"): (
        "it tunes the Go runtime, which is not here"
    ),
    ("OTEL_EXPORTER_OTLP_LOGS_", "OTEL_EXPORTER_OTLP_METRICS_"): "it has no effect: spans are sent",
    ("OTEL_",): "it has no effect; TRACING_SERVICE_NAME and TRACING_SAMPLING_RATE have",
    ("RAY_",): "Ray reads it",
    ("KUBERNETES_", "POD_", "NODE_NAME", "HOSTNAME"): "it tells where a container runs",
    ("PATH", "HOME", "USER", "TZ", "LANG", "LC_", "PWD", "SHELL", "TERM"): "it is the system's",
    ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_"): "libraries read it",
}
# Defaults that are not the reference's, by canonical name (part A of docs/ratelimit.md).
OTHER_DEFAULTS = {
    "BACKEND_TYPE": "counters are in Tollgate's own actors; there: in Redis",
    "GRPC_HOST": "gRPC is for this machine only, 127.0.0.1; there: 0.0.0.0",
    "DEBUG_HOST": "the debug port is for this machine only, 127.0.0.1; there: 0.0.0.0",
    "RUNTIME_ROOT": "the rules are a sample; there: those in /srv/runtime_data/current",
    "KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR": (
        "a connection that led to a replica is closed, true; there: false"
    ),
}
IMPLIED_BY = {
    "BACKEND_TYPE": ("KVSTORE_URL",),
    "RUNTIME_ROOT": ("RUNTIME_SUBDIRECTORY", "RUNTIME_APPDIRECTORY"),
}
# Names that people write for settings with names that are not like theirs.
MEANT = {"HTTP_HOST": "HOST", "HTTP_PORT": "PORT"}


class Fate(Enum):
    """What becomes of a line."""

    MEANS = "means"
    IDLE = "idle"
    IGNORED = "ignored"
    UNKNOWN = "unknown"
    OPEN = "open"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Meaning:
    """A line of the file. `name` as it is written there; empty where there is none."""

    line: int
    name: str
    fate: Fate
    text: str


@dataclass(frozen=True, slots=True)
class Understanding:
    """A whole file. `refusals`: what a start refuses beside the lines that it refuses; `defaults`:
    what is not in the file and is not as in the reference."""

    lines: tuple[Meaning, ...]
    refusals: tuple[str, ...]
    defaults: tuple[str, ...]

    @property
    def is_refused(self) -> bool:
        """Whether a start with this file would be refused."""
        return bool(self.refusals) or any(line.fate is Fate.REFUSED for line in self.lines)


def understood(lines: Iterable[Variable | OddLine]) -> Understanding:
    """The meaning of the lines of a file."""
    lines = tuple(lines)
    last = {each.name: each for each in lines if isinstance(each, Variable)}
    environ = {name: each.value for name, each in last.items() if each.value is not None}
    rows = {name: row for row in _rows(environ) for name in row.names}
    settings = Settings.readable(environ)
    bad = {
        name: str(error)
        for name, value in environ.items()
        if name in rows and (error := _error(rows[name], name, value))
    }
    refusals = [line for line in _refusals(environ) if line not in bad.values()]
    bad |= {
        name: line
        for name in environ
        if _is_read_by_exporters(name)
        for line in refusals
        if line.startswith(f"{name}: ")
    }
    meanings = []
    for each in lines:
        if isinstance(each, OddLine):
            meanings.append(Meaning(each.line, "", Fate.REFUSED, each.fault))
        elif last[each.name] is not each:
            text = f"line {last[each.name].line} sets it again"
            meanings.append(Meaning(each.line, each.name, Fate.IGNORED, text))
        else:
            fate, text = _fate(each, rows, settings, bad)
            text = f"{text} ({each.note})" if each.note else text
            meanings.append(Meaning(each.line, each.name, fate, text))
    given = {rows[name].name for name in last if name in rows}
    return Understanding(
        tuple(meanings),
        tuple(line for line in refusals if line not in bad.values()),
        tuple(_defaults(given, settings)),
    )


def _rows(environ: Mapping[str, str]) -> tuple[Row, ...]:
    return (*TABLE.values(), *mogrifier_rows(environ))


def _error(row: Row, name: str, value: str) -> BadValueError | None:
    try:
        row.read(name, value)
    except BadValueError as error:
        return error
    return None


def _refusals(environ: Mapping[str, str]) -> tuple[str, ...]:
    """All that a start refuses."""
    try:
        Settings.from_environment(environ)
    except SettingsError as error:
        return error.errors
    return ()


def _defaults(given: set[str], settings: Settings) -> Iterator[str]:
    for name, text in OTHER_DEFAULTS.items():
        is_given = not given.isdisjoint((name, *IMPLIED_BY.get(name, ())))
        if not is_given and not missing_condition(settings, name):
            yield f"{name}: {text}"


def _fate(
    variable: Variable, rows: Mapping[str, Row], settings: Settings, bad: Mapping[str, str]
) -> tuple[Fate, str]:
    name = variable.name
    row = rows.get(name)
    if row is None and _is_read_by_exporters(name):
        return _fate_with_exporters(variable, settings, bad)
    if row is None:
        return _fate_of_no_setting(name, rows)
    if variable.value is None:
        return Fate.OPEN, f"{row.name} is what it is where this is started ({row.meaning})"
    if name in bad:
        return Fate.REFUSED, bad[name].removeprefix(f"{name}: ")
    text = f"{row.name} = {_shown(row, variable.value)}"
    if reason := missing_condition(settings, row.name):
        return Fate.IDLE, f"{text}, without effect: {reason}"
    if settings.grpc.front is GrpcFront.AUTO and row.name in settings.reasons_for_grpcio:
        return Fate.MEANS, f"{text} ({row.meaning}); for it grpcio serves gRPC, the slower front"
    return Fate.MEANS, f"{text} ({row.meaning})"


def _is_read_by_exporters(name: str) -> bool:
    """Whether what sends spans reads this variable of OpenTelemetry's (B21)."""
    kind = name.removeprefix(OTLP_PREFIX)
    is_of_spans = kind != name and not kind.startswith(("LOGS_", "METRICS_"))
    return is_of_spans or name in OTHER_OTLP_VARIABLES


def _fate_with_exporters(
    variable: Variable, settings: Settings, bad: Mapping[str, str]
) -> tuple[Fate, str]:
    """The fate of a variable that the exporters of spans read. Its value may be a secret, so it
    is not shown."""
    text = "what sends spans reads it"
    if variable.name in bad:
        return Fate.REFUSED, bad[variable.name].removeprefix(f"{variable.name}: ")
    if not settings.tracing.is_on:
        return Fate.IDLE, f"{text}, without effect: nothing is traced (TRACING_ENABLED)"
    if variable.value is None:
        return Fate.OPEN, f"{text}, as it is where this is started"
    return Fate.MEANS, text


def _fate_of_no_setting(name: str, rows: Mapping[str, Row]) -> tuple[Fate, str]:
    for begins, text in FOREIGN.items():
        if name.startswith(begins):
            return Fate.IGNORED, text
    near = [MEANT[name]] if name in MEANT else []
    near = near or get_close_matches(name, sorted(rows), n=1, cutoff=LIKENESS_MIN)
    return Fate.UNKNOWN, f"nothing reads it; meant {near[0]}?" if near else "nothing reads it"


# Values

_ATTRIBUTES = {
    row.name: attribute for kind in GROUPS.values() for attribute, row in rows_of(kind).items()
}


def _shown(row: Row, text: str) -> str:
    """The value as it was understood; masked where it is a secret."""
    shown = row.show(text)
    if shown == text:
        shown = _written(row.read(row.name, text), is_time=_is_time(row.name, text))
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in shown) or "empty"


def _is_time(name: str, text: str) -> bool:
    """Whether the setting is a time: its attribute says so, or its text."""
    return _ATTRIBUTES.get(name, "").endswith("_s") or text[-1:].isalpha()


def _written(value: object, *, is_time: bool = False) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    if isinstance(value, float):
        return f"{value:.7g} s" if is_time else f"{value:.7g}"
    if isinstance(value, Address):
        return f"{f'[{value.host}]' if ':' in value.host else value.host}:{value.port}"
    if isinstance(value, tuple):
        is_pairs = all(isinstance(each, tuple) for each in value)
        return ", ".join("=".join(each) if is_pairs else _written(each) for each in value)
    return str(value)
