"""The lines that a node writes to its operator: addresses, changes of rules, statistics."""

import logging
from collections.abc import Mapping
from typing import Any

import click

from tollgate.actors.ratelimit.statistics.totals import Flush
from tollgate.serve.node.run_record import OPERATOR
from tollgate.serve.ratelimit.sinks.json_lines import json_lines
from tollgate.serve.settings import Settings

LOG = logging.getLogger("tollgate.node")


def addresses_of(
    settings: Settings, grpc: str, json: str, routes: Mapping[str, str]
) -> dict[str, str]:
    """The doors by name. `grpc` and `json`: where those listen, which settings may leave open.
    `routes`: the beginnings of paths that lead to the services that are on, by their names."""
    http = f"{settings.http.host}:{settings.http.port}"
    addresses = {"HTTP": http, "JSON": f"http://{json}/json", "gRPC": grpc}
    if prefix := routes.get("payments"):
        addresses["payments"] = f"http://{addresses['HTTP']}{prefix} (to browse: /docs)"
        if settings.payments.operator_key_file:
            own = settings.payments
            addresses[OPERATOR] = f"http://{own.operator_host}:{own.operator_port}"
    if prefix := routes.get("catalog-auth"):
        addresses["catalog auth"] = f"http://{addresses['HTTP']}{prefix}/"
    return addresses


class Announcements:
    """Says what has changed since it was said last."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._rules: tuple[Any, Any] = (None, None)
        self._away = ""

    def tell_start(
        self, addresses: Mapping[str, str], rules: dict[str, Any], took_s: float
    ) -> None:
        """The addresses, the domains that have rules, and where the logs are."""
        for name in ("gRPC", "HTTP", "debug"):
            LOG.warning("Listening for %s on '%s'", name, addresses[name])
        lines = [f"Tollgate is up after {took_s:.1f} s."]
        lines += [f"  {name:<14}{address}" for name, address in addresses.items()]
        lines.append(f"  {'domains':<14}{', '.join(rules['domains']) or 'none'}")
        lines.append(f"  {'logs':<14}{self._settings.process.data}/ray/session_latest/logs")
        if rules["error"]:
            lines.append(f"  {'rules':<14}not loaded: {rules['error']}")
        if not rules["generation"] and rules["away"]:
            lines.append(f"  {'rules':<14}none yet: {rules['away']}")
        click.echo("\n".join(lines))
        self._rules = (rules["generation"], rules["error"])

    def tell_rules(self, rules: dict[str, Any]) -> None:
        """The rules in force, or the reason why newer ones are not."""
        news = (rules["generation"], rules["error"])
        if news != self._rules and rules["error"]:
            LOG.error("rules not loaded, the last good ones stay in force: %s", rules["error"])
        elif news != self._rules:
            domains = ", ".join(rules["domains"]) or "none"
            LOG.warning("rules in force: generation %d, domains %s", news[0], domains)
        self._rules = news
        self._tell_control_plane(rules)

    def _tell_control_plane(self, rules: dict[str, Any]) -> None:
        """Once that it is away, and once that it is back. Why it is away may change by the try."""
        away = rules["away"]
        if away and not self._away:
            LOG.error("the rules in force stay: %s", away)
        elif self._away and not away:
            LOG.warning("the %s answers", rules["source"])
        self._away = away

    def tell_statistics(self, flush: Flush) -> None:
        """A line for each statistic that has changed."""
        for line in json_lines(flush, dict(self._settings.statistics.extra_tags)):
            click.echo(line)
