"""Ends the processes that a killed run has left behind.

Ray's processes end a moment after the node that started them. Nothing tells HAProxy, so it is ended
here: its ports would be taken for ever.
"""

import time

import psutil

from tollgate.actors.kernel.clock import Clock
from tollgate.serve.node.ports import port_conflicts
from tollgate.serve.node.run_record import record_path
from tollgate.serve.node.socket_folder import socket_folder
from tollgate.serve.settings import Settings

END_WITHIN_S = 10.0
LOOK_EVERY_S = 0.1


def end_orphans(settings: Settings, clock: Clock) -> None:
    """Ends what an earlier run with this data folder left; call it when nothing runs there.

    Returns when the ports are free, or after END_WITHIN_S, for somebody else may have them.
    """
    data = settings.process.data
    if not record_path(data).exists():  # (an orderly end takes the record away)
        return
    folder = str(socket_folder(data) / "haproxy")
    for process in psutil.process_iter(["name", "cmdline"]):
        words = process.info["cmdline"] or ()
        if process.info["name"] == "haproxy" and any(w.startswith(f"{folder}/") for w in words):
            process.kill()
    give_up_s = clock.monotonic_s() + END_WITHIN_S
    while any(port_conflicts(settings)) and clock.monotonic_s() < give_up_s:
        time.sleep(LOOK_EVERY_S)
