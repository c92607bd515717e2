"""The table of settings as a whole: all groups, and all rows by canonical name.

The rows themselves are the fields of the groups, each in the file of its service: `service.py` (the
node and the rate limit), `ledger.py`, `payments.py` and `catalog_auth.py`; rows on what is called
from here are in `outside/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any, get_type_hints

from tollgate.serve.settings import service
from tollgate.serve.settings.catalog_auth import CatalogSettings, CrawlSettings
from tollgate.serve.settings.ledger import LedgerSettings
from tollgate.serve.settings.outside.control_plane import ControlPlaneSettings
from tollgate.serve.settings.outside.kvstore import KvstorePersecondSettings, KvstoreSettings
from tollgate.serve.settings.outside.memcached import MemcachedSettings
from tollgate.serve.settings.outside.mogrifiers import Mogrifier
from tollgate.serve.settings.outside.tracing import TracingSettings
from tollgate.serve.settings.payments import MailSettings, PaymentsSettings, WebhookSettings
from tollgate.serve.settings.rows import Row, rows_of, spelled

# OpenTelemetry's variables that say where spans go to, and how.
OTLP_PREFIX = "OTEL_EXPORTER_OTLP_"


@dataclass(frozen=True, slots=True)
class Groups:
    """The value of every setting. `Groups()` holds the defaults of the table.

    `mogrifiers`: the dynamic family AGENT_STATSD_MOGRIFIER_<NAME>_*, in order. `otlp`:
    OpenTelemetry's own variables, as they are. `given`: the settings found in the
    environment, canonical name to the spelling that was used there.
    """

    http: service.HttpSettings = field(default_factory=service.HttpSettings)
    json: service.JsonSettings = field(default_factory=service.JsonSettings)
    grpc: service.GrpcSettings = field(default_factory=service.GrpcSettings)
    debug: service.DebugSettings = field(default_factory=service.DebugSettings)
    log: service.LogSettings = field(default_factory=service.LogSettings)
    process: service.ProcessSettings = field(default_factory=service.ProcessSettings)
    rules: service.RuleSettings = field(default_factory=service.RuleSettings)
    control_plane: ControlPlaneSettings = field(default_factory=ControlPlaneSettings)
    decision: service.DecisionSettings = field(default_factory=service.DecisionSettings)
    bounds: service.BoundSettings = field(default_factory=service.BoundSettings)
    counting: service.CountingSettings = field(default_factory=service.CountingSettings)
    memcached: MemcachedSettings = field(default_factory=MemcachedSettings)
    kvstore: KvstoreSettings = field(default_factory=KvstoreSettings)
    persecond: KvstorePersecondSettings = field(default_factory=KvstorePersecondSettings)
    statistics: service.StatisticsSettings = field(default_factory=service.StatisticsSettings)
    tracing: TracingSettings = field(default_factory=TracingSettings)
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    payments: PaymentsSettings = field(default_factory=PaymentsSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    mail: MailSettings = field(default_factory=MailSettings)
    catalog: CatalogSettings = field(default_factory=CatalogSettings)
    crawl: CrawlSettings = field(default_factory=CrawlSettings)
    mogrifiers: tuple[Mogrifier, ...] = ()
    otlp: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def spelled(self, name: str) -> str:
        """The name as the environment spells it, or would."""
        return spelled(name, self.given)


GROUPS: Mapping[str, type] = {
    name: group
    for name, group in get_type_hints(Groups).items()
    if isinstance(group, type) and is_dataclass(group)
}
_ROWS: Mapping[str, tuple[Row, ...]] = {
    **{name: tuple(rows_of(group).values()) for name, group in GROUPS.items()},
}
TABLE: Mapping[str, Row] = {row.name: row for rows in _ROWS.values() for row in rows}
GROUP_OF: Mapping[str, str] = {row.name: group for group, rows in _ROWS.items() for row in rows}


def group_values(values: Mapping[str, object]) -> dict[str, Any]:
    """Each group built from values by canonical name; a row without a value has its default.

    What holds the types together is the annotation of each field, checked against its parser.
    """
    return {
        name: group(
            **{
                attribute: values[row.name]
                for attribute, row in rows_of(group).items()
                if row.name in values
            }
        )
        for name, group in GROUPS.items()
    }
