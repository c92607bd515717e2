"""Writes statistics as JSON lines, for standard output when that was chosen (B19).

{"name": …, "type": "counter", "value": …}    what was added since the last lines; zeros left out
{"name": …, "type": "gauge", "value": …}      every time
{"name": …, "type": "timer", "count": …, "mean_us": …, "p99_us": …}    of the new calls
"""

import json
from collections.abc import Iterator, Mapping

from tollgate.actors.ratelimit.statistics.totals import Flush, times_name


def json_lines(flush: Flush, tags: Mapping[str, str] | None = None) -> Iterator[str]:
    """The lines of a flush; `tags` go with every one of them."""
    tagged = {"tags": dict(tags)} if tags else {}
    for name, added in sorted(flush.counters.items()):
        yield _line({"name": name, "type": "counter", "value": added, **tagged})
    for name, value in sorted(flush.gauges.items()):
        yield _line({"name": name, "type": "gauge", "value": value, **tagged})
    for method, latency in sorted(flush.latencies.items()):
        yield _line(
            {
                "name": times_name(method),
                "type": "timer",
                "count": latency.count,
                "mean_us": round(latency.sum_s / latency.count * 1e6),
                "p99_us": round(latency.quantile_s(0.99) * 1e6),
                **tagged,
            }
        )


def _line(fields: dict[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False)
