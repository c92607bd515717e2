"""Chooses a server of statistics, and how they are written for it, from the settings (B19)."""

from collections.abc import Callable
from pathlib import Path

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.rules.rule_file import RULE_FILE_BYTES_MAX
from tollgate.serve.ratelimit.sinks.connections import (
    StatsdConnection,
    TcpConnection,
    UdpConnection,
)
from tollgate.serve.ratelimit.sinks.lines import DogstatsdLines, Lines, StatsdLines
from tollgate.serve.ratelimit.sinks.mapping import MetricMapper
from tollgate.serve.ratelimit.sinks.mapping_file import MappingFileError, read_mapper
from tollgate.serve.ratelimit.sinks.mogrification import Mogrification, Rewriting
from tollgate.serve.ratelimit.sinks.prometheus import MetricsText
from tollgate.serve.ratelimit.sinks.pump import LineSink
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import StatsdProtocol, Transport
from tollgate.serve.settings.outside.expressions import compiled


def line_sink(
    settings: Settings, clock: Clock, count: Callable[[str, int], None]
) -> LineSink | None:
    """The server of these settings; None when none was chosen. `count`: of a statistic."""
    lines = statistics_lines(settings)
    return lines and LineSink(_connection(settings, clock), lines, clock, count)


def statistics_lines(settings: Settings) -> Lines | None:
    """The writing of lines for the server that was chosen, if there is one."""
    tags = dict(settings.statistics.extra_tags)
    match settings.statistics.transport:
        case Transport.STATSD:
            return StatsdLines(tags)
        case Transport.AGENT_STATSD:
            rewritings = (
                Rewriting(compiled(each.pattern), each.replacement, each.tags)
                for each in settings.mogrifiers
            )
            return DogstatsdLines(tags, Mogrification(rewritings))
    return None


def metrics_text(settings: Settings) -> MetricsText:
    """The rendering of the metrics page. ValueError, with one line, when settings do not fit."""
    statistics = settings.statistics
    return MetricsText(
        dict(statistics.extra_tags),
        has_milliseconds=statistics.is_response_time_in_ms,
        mapper=_own_mapper(statistics.pullmetrics_mapper),
    )


def _own_mapper(file: str) -> MetricMapper | None:
    if not file:
        return None
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(RULE_FILE_BYTES_MAX + 1)
    except OSError as error:
        line = f"PROMETHEUS_MAPPER_YAML: {file} cannot be read: {error.strerror}"
        raise MappingFileError(line) from None
    return read_mapper(file, content)


def _connection(settings: Settings, clock: Clock) -> StatsdConnection:
    statistics = settings.statistics
    is_agent = statistics.transport is Transport.AGENT_STATSD
    if is_agent or statistics.statsd_protocol is StatsdProtocol.UDP:
        return UdpConnection(statistics.statsd_host, statistics.statsd_port, clock)
    return TcpConnection(statistics.statsd_host, statistics.statsd_port)
