"""Traces what this process allocates over an interval and still holds at its end, by line of code.

Tracing slows Python down to about a half while it is on, so it is on only between the two calls.
"""

import tracemalloc

LINES_MAX = 40


def start_tracing() -> None:
    """Begin an interval; one that was never finished is dropped."""
    tracemalloc.start()
    tracemalloc.clear_traces()


def finish_tracing() -> str:
    """End the interval: a line per place in the code, the largest first, then the sum.

    Says so when no interval was begun, as in a process that was restarted meanwhile.
    """
    if not tracemalloc.is_tracing():
        return "not traced: the process was restarted meanwhile\n"
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    places = snapshot.filter_traces([tracemalloc.Filter(False, tracemalloc.__file__)]).statistics(
        "lineno"
    )
    lines = [
        f"{place.size / 1024:>12,.1f} KiB {place.count:>9,} blocks  "
        f"{place.traceback[0].filename}:{place.traceback[0].lineno}"
        for place in places[:LINES_MAX]
    ]
    held_bytes = sum(place.size for place in places)
    lines.append(f"{held_bytes / 1024:>12,.1f} KiB in {len(places):,} places")
    return "\n".join(lines) + "\n"
