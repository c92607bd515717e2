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
from tollgate.serve.settings.outside.mogrifiers import mogrifier_rows
from tollgate.serve.settings.rows import Row, rows_of
from tollgate.serve.settings.table import GROUPS, TABLE
from tollgate.serve.settings.values import Address, BadValueError

LIKENESS_MIN = 0.75
FOREIGN = {
    ("GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOTRACEBACK", "GORACE"): (
        "it tunes the Go runtime, which is not here"
    ),
    ("OTEL_",): "the library that sends traces reads it",
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
}
IMPLIED_BY = {
    "BACKEND_TYPE": ("KVSTORE_URL",),
    "RUNTIME_ROOT": ("RUNTIME_SUBDIRECTORY", "RUNTIME_APPDIRECTORY"),
}


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
        tuple(meanings), tuple(_refusals(environ, set(bad.values()))), tuple(_defaults(given))
    )


def _rows(environ: Mapping[str, str]) -> tuple[Row, ...]:
    return (*TABLE.values(), *mogrifier_rows(environ))


def _error(row: Row, name: str, value: str) -> BadValueError | None:
    try:
        row.read(name, value)
    except BadValueError as error:
        return error
    return None


def _refusals(environ: Mapping[str, str], told: set[str]) -> Iterator[str]:
    """What a start refuses, but for the errors that are told with their lines."""
    try:
        Settings.from_environment(environ)
    except SettingsError as error:
        yield from (line for line in error.errors if line not in told)


def _defaults(given: set[str]) -> Iterator[str]:
    for name, text in OTHER_DEFAULTS.items():
        if given.isdisjoint((name, *IMPLIED_BY.get(name, ()))):
            yield f"{name}: {text}"


def _fate(
    variable: Variable, rows: Mapping[str, Row], settings: Settings, bad: Mapping[str, str]
) -> tuple[Fate, str]:
    name = variable.name
    row = rows.get(name)
    if row is None:
        return _fate_of_no_setting(name, rows)
    if variable.value is None:
        return Fate.OPEN, f"{row.name} is what it is where this is started ({row.meaning})"
    if name in bad:
        return Fate.REFUSED, bad[name].removeprefix(f"{name}: ")
    text = f"{row.name} = {_shown(row, variable.value)}"
    if reason := missing_condition(settings, row.name):
        return Fate.IDLE, f"{text}, without effect: {reason}"
    return Fate.MEANS, f"{text} ({row.meaning})"


def _fate_of_no_setting(name: str, rows: Mapping[str, Row]) -> tuple[Fate, str]:
    for begins, text in FOREIGN.items():
        if name.startswith(begins):
            return Fate.IGNORED, text
    near = get_close_matches(name, sorted(rows), n=1, cutoff=LIKENESS_MIN)
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
