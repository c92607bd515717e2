"""Reading the environment into settings, and saying what it left them as.

Only this module reads the process environment, or adds to it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from tollgate.serve.settings.checks import needs_of_grpcio, problems
from tollgate.serve.settings.choices import GrpcFront, Transport
from tollgate.serve.settings.outside.mogrifiers import mogrifier_rows, mogrifiers
from tollgate.serve.settings.rows import Row
from tollgate.serve.settings.shipped_files import SAMPLE_RULES
from tollgate.serve.settings.table import GROUP_OF, OTLP_PREFIX, TABLE, Groups, group_values
from tollgate.serve.settings.values import BadValueError, is_loopback_host

# Read as <root>/<subdirectory>/<app directory>: exactly this folder, in either watch mode (B20).
SAMPLE_RULE_SETTINGS = {
    "RUNTIME_ROOT": str(SAMPLE_RULES.parents[1]),
    "RUNTIME_SUBDIRECTORY": SAMPLE_RULES.parent.name,
    "RUNTIME_APPDIRECTORY": SAMPLE_RULES.name,
    "RUNTIME_WATCH_ROOT": "false",
}
RULE_PLACES = ("RUNTIME_ROOT", "RUNTIME_SUBDIRECTORY", "RUNTIME_APPDIRECTORY")

# Names that begin so are taken for ours; one that is almost a setting's name is worth a warning.
OWN_PREFIXES = (
    *("AGENT_STATSD_", "ALTCACHE_", "CATALOG_", "CONFIG_GRPC_XDS_", "COUNTER", "DEBUG_"),
    *("DOG_STATSD_", "GRPC_", "KVSTORE_", "LIMIT_", "MEMCACHE_", "PAYMENTS_", "PROMETHEUS_"),
    *("PULLMETRICS_", "REDIS_", "RUNTIME_", "SMTP_", "STATSD_", "TOLLGATE_", "TRACING_"),
    *("WEBHOOK_", "XDS_CLIENT_"),
)
LIKENESS_MIN = 0.88
OTHER_OTLP_VARIABLES = ("OTEL_RESOURCE_ATTRIBUTES", "OTEL_SDK_DISABLED")


class SettingsError(Exception):
    """The environment holds bad values; `errors` has one line for each."""

    def __init__(self, errors: tuple[str, ...]) -> None:
        super().__init__(errors)
        self.errors = errors

    def __str__(self) -> str:
        return "\n".join(self.errors)


@dataclass(frozen=True, slots=True)
class Settings(Groups):
    """The value of every setting. `Settings()` holds the defaults of the table."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Settings":
        """The settings of these variables; raises `SettingsError` with every error there is."""
        reading = _read(environ)
        given = {entry.row.name: entry.spellings[0] for entry in reading.entries if entry.spellings}
        settings = cls(
            **group_values(reading.values),
            otlp=_otlp_variables(environ),
            given=given,
            warnings=_near_misses(environ),
        )
        found = list(problems(settings))
        if settings.statistics.transport is Transport.AGENT_STATSD:
            names = settings.statistics.mogrifier_names
            built, wrong = mogrifiers(names, reading.values, given)
            settings = replace(settings, mogrifiers=built)
            found += wrong
        # Where a value could not be read its default stands in, and that is not to blame.
        lines = [problem.line for problem in found if reading.bad.isdisjoint(problem.names)]
        if reading.errors or lines:
            raise SettingsError((*reading.errors, *lines))
        return settings

    @classmethod
    def readable(cls, environ: Mapping[str, str]) -> "Settings":
        """What can be read of these variables, to be looked at and not to be started with: nobody
        asks whether it goes together."""
        reading = _read(environ)
        given = {entry.row.name: entry.spellings[0] for entry in reading.entries if entry.spellings}
        return cls(**group_values(reading.values), given=given)

    @property
    def reasons_for_grpcio(self) -> tuple[str, ...]:
        """The settings, in their canonical names, for which AUTO means the grpcio front: those that
        it alone can honour, and an address that others reach, for it alone bounds a message."""
        needs = needs_of_grpcio(self)
        if "GRPC_UDS" in needs or is_loopback_host(self.grpc.host):
            return needs
        return (*needs, "GRPC_HOST")

    @property
    def grpc_front(self) -> GrpcFront:
        """The front that listens for gRPC, NATIVE or GRPCIO: decided here and nowhere else."""
        if self.grpc.front is not GrpcFront.AUTO:
            return self.grpc.front
        return GrpcFront.GRPCIO if self.reasons_for_grpcio else GrpcFront.NATIVE


@dataclass(frozen=True, slots=True)
class Description:
    """A setting as `tollgate settings` shows it; secrets are masked in `value` and `default`.

    `source`: `default`, `default (sample rules)`, `environment (NAME)`, or `implied by NAME`.
    """

    name: str
    other_names: tuple[str, ...]
    value: str
    default: str
    source: str
    feature: str
    meaning: str


def describe(environ: Mapping[str, str]) -> tuple[Description, ...]:
    """Every setting as this environment leaves it, in the order of the table; values as written."""
    return tuple(
        Description(
            name=entry.row.name,
            other_names=entry.row.names[1:],
            value=entry.row.show(entry.text),
            default=entry.row.show(entry.row.default),
            source=entry.source,
            feature=GROUP_OF.get(entry.row.name, "statistics"),
            meaning=entry.row.meaning,
        )
        for entry in _read(environ).entries
    )


def process_environment() -> dict[str, str]:
    """The variables of this process."""
    return dict(os.environ)


def add_to_process_environment(variables: Mapping[str, str]) -> None:
    """Sets variables for libraries that read them by themselves."""
    os.environ.update(variables)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row with the text that holds for it. `spellings`: its names in the environment."""

    row: Row
    text: str
    source: str
    spellings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reading:
    """An environment after reading: `values` and `bad` by canonical name."""

    entries: tuple[_Entry, ...]
    values: dict[str, object]
    errors: tuple[str, ...]
    bad: frozenset[str]


def _read(environ: Mapping[str, str]) -> _Reading:
    rows = {row.name: row for row in (*TABLE.values(), *mogrifier_rows(environ))}
    entries = {row.name: entry for row in rows.values() if (entry := _find(row, environ))}
    values: dict[str, object] = {}
    errors: list[str] = []
    for name, entry in entries.items():
        found = _parse(entry, environ, errors)
        if len(found) == 1:
            values[name] = found[0]
    bad = frozenset(entries.keys() - values.keys())
    for name, implied in _implied(values, entries).items():
        entries[name] = implied
        values[name] = implied.row.parse(implied.text)
    ordered = (
        entries.get(row.name) or _Entry(row, row.default, "default") for row in rows.values()
    )
    return _Reading(tuple(ordered), values, tuple(errors), bad)


def _find(row: Row, environ: Mapping[str, str]) -> _Entry | None:
    spellings = tuple(name for name in row.names if name in environ)
    if not spellings:
        return None
    source = f"environment ({', '.join(spellings)})"
    return _Entry(row, environ[spellings[0]], source, spellings)


def _parse(entry: _Entry, environ: Mapping[str, str], errors: list[str]) -> list[object]:
    """The distinct values of an entry's spellings: one, unless something was added to `errors`."""
    found: list[object] = []
    for spelling in entry.spellings:
        try:
            value = entry.row.read(spelling, environ[spelling])
        except BadValueError as error:
            errors.append(str(error))
            return []
        if value not in found:
            found.append(value)
    if len(found) > 1:
        names = " and ".join(entry.spellings)
        shown = " and ".join(repr(entry.row.show(environ[name])) for name in entry.spellings)
        errors.append(f"{names}: are one setting and differ, {shown}: unset one")
    return found


def _implied(values: Mapping[str, object], given: Mapping[str, _Entry]) -> dict[str, _Entry]:
    """The values that follow from the settings that were given, of those that were not (part A)."""
    implied: dict[str, tuple[str, str]] = {}
    if values.get("KVSTORE_URL"):
        implied["BACKEND_TYPE"] = ("kvstore", f"implied by {given['KVSTORE_URL'].spellings[0]}")
    for transport in ("USE_AGENT_STATSD", "USE_PULLMETRICS"):
        if values.get(transport) is True:
            implied["USE_STATSD"] = ("false", f"implied by {given[transport].spellings[0]}")
    if not any(name in given for name in RULE_PLACES):
        for name, text in SAMPLE_RULE_SETTINGS.items():
            implied[name] = (text, "default (sample rules)")
    return {
        name: _Entry(TABLE[name], text, source)
        for name, (text, source) in implied.items()
        if name not in given
    }


def _otlp_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """OpenTelemetry's variables that have to do with spans here."""
    return {
        name: value
        for name, value in environ.items()
        if name.startswith(OTLP_PREFIX) or name in OTHER_OTLP_VARIABLES
    }


def _near_misses(environ: Mapping[str, str]) -> tuple[str, ...]:
    known = {name for row in TABLE.values() for name in row.names}
    family = {name for row in mogrifier_rows(environ) for name in row.names}
    return tuple(
        f"{name}: is not a setting and has no effect; meant {near}?"
        for name in sorted(environ.keys() - known - family)
        if name.startswith(OWN_PREFIXES)
        for near in get_close_matches(name, sorted(known), n=1, cutoff=LIKENESS_MIN)
    )
