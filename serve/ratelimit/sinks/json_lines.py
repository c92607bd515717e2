"""Writes statistics as JSON lines, for standard output when no transport is chosen (B19).

{"name": …, "type": "counter", "value": …}    what was added since the last lines; zeros left out
{"name": …, "type": "gauge", "value": …}      every time
{"name": …, "type": "timer", "count": …, "mean_us": …, "p99_us": …}    of the new calls
"""

import json
from collections.abc import Iterator, Mapping
from operator import sub

from tollgate.actors.ratelimit.statistics.latencies import Latency
from tollgate.actors.ratelimit.statistics.totals import Statistics

NO_STATISTICS = Statistics({}, {}, {})


def json_lines(
    before: Statistics, now: Statistics, tags: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The lines for what happened between two readings; `tags` go with every one of them."""
    tagged = {"tags": dict(tags)} if tags else {}
    for name, total in sorted(now.counters.items()):
        known = before.counters.get(name, 0)
        # A total that fell was begun anew.
        added = total - known if total >= known else total
        if added:
            yield _line({"name": name, "type": "counter", "value": added, **tagged})
    for name, value in sorted(now.gauges.items()):
        yield _line({"name": name, "type": "gauge", "value": value, **tagged})
    for method, latency in sorted(now.latencies.items()):
        new = _since(before.latencies.get(method), latency)
        if new.count:
            yield _line(
                {
                    "name": f"ratelimit_server.{method}.response_time",
                    "type": "timer",
                    "count": new.count,
                    "mean_us": round(new.sum_s / new.count * 1e6),
                    "p99_us": round(new.quantile_s(0.99) * 1e6),
                    **tagged,
                }
            )


def _since(before: Latency | None, now: Latency) -> Latency:
    if before is None or before.count > now.count:
        return now
    return Latency(tuple(map(sub, now.counts, before.counts)), now.sum_s - before.sum_s)


def _line(fields: dict[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False)
