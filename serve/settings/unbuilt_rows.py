"""The settings of features to be built: known by name, checked and shown, and driving nothing.

An environment written for the reference may hold any of them (B22).
"""

from collections.abc import Mapping

from tollgate.serve.settings.rows import Row
from tollgate.serve.settings.values import (
    PORT_MAX,
    duration,
    text,
    whole_number,
)

size = whole_number(0, 2**31 - 1)
port = whole_number(1, PORT_MAX)
time = duration()


UNBUILT_ROWS: Mapping[str, tuple[Row, ...]] = {
    "statsd": (  # B19
        Row("STATSD_HOST", text, "localhost", "host of the statsd server"),
        Row("STATSD_PORT", port, "8125", "port of the statsd server"),
    ),
}
