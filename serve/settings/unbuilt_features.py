"""Features to be built: a start refuses the settings that ask for one, and says what to do.

Settings that would only tune such a feature are let pass (`unbuilt_rows.py`). Building a feature
means deleting it here and giving its settings a group.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tollgate.serve.settings.choices import Transport
from tollgate.serve.settings.table import Groups


@dataclass(frozen=True, slots=True)
class UnbuiltFeature:
    """A feature to be built: the settings that ask for it, and what to do meanwhile."""

    names: tuple[str, ...]
    feature: str
    instead: str
    is_asked_for: Callable[[Groups], bool]

    def line(self, settings: Groups) -> str:
        """The line for the operator, with the setting spelled as the environment spells it."""
        name = next((name for name in self.names if name in settings.given), self.names[0])
        return f"{settings.spelled(name)}: {self.feature} is not built yet: {self.instead}"


UNBUILT = (
    UnbuiltFeature(
        ("USE_STATSD",),
        "sending statistics to statsd",
        "unset it, or set USE_PULLMETRICS=true in its place",
        # The default chooses nothing (part A, "Statistics transports").
        lambda settings: (
            settings.statistics.transport is Transport.STATSD and "USE_STATSD" in settings.given
        ),
    ),
    UnbuiltFeature(
        ("USE_AGENT_STATSD",),
        "sending statistics to DogStatsD, with mogrifiers,",
        "unset it, or set USE_PULLMETRICS=true in its place",
        lambda settings: settings.statistics.transport is Transport.AGENT_STATSD,
    ),
    UnbuiltFeature(
        ("PULLMETRICS_MAPPER_YAML",),
        "a mapping of one's own for the metrics page",
        "unset it for the default mapping",
        lambda settings: (
            settings.statistics.transport is Transport.PULLMETRICS
            and settings.statistics.pullmetrics_mapper != ""
        ),
    ),
)
