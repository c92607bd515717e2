"""The ports of the operations actor: the debug port, and the metrics port where it is turned on."""

from tollgate.actors.operations.actor import Operations
from tollgate.serve.net.listener import Listener, listen
from tollgate.serve.ratelimit.debug.port import DebugPort
from tollgate.serve.ratelimit.sinks.prometheus import MetricsText, metrics_app
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import Transport


async def open_ports(settings: Settings, operations: Operations) -> dict[str, Listener]:
    """Opens the ports of these settings: the open ones by name. OSError when one is taken."""
    debug = DebugPort(
        statistics=operations.statistics,
        dump_rules=operations.dump_rules,
        processes=operations.processes,
        allocations=operations.allocations,
    )
    ports = {
        "debug": await listen(
            debug.app(), settings.debug.host, settings.debug.port, what="the debug port"
        )
    }
    statistics = settings.statistics
    if statistics.transport is not Transport.PULLMETRICS:
        return ports
    text = MetricsText(
        dict(statistics.extra_tags), has_milliseconds=statistics.is_response_time_in_ms
    )
    address = statistics.pullmetrics_addr
    app = metrics_app(text, operations.statistics, statistics.pullmetrics_path)
    try:
        ports["metrics"] = await listen(app, address.host, address.port, what="the metrics port")
    except OSError:
        await ports["debug"].stop()
        raise
    return ports
