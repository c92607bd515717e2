"""The folders that Ray leaves behind, one for each start: the logs of its processes.

Ray makes `session_<time>_<pid>` and never removes one.
"""

import shutil
from pathlib import Path

# With the one that is about to begin.
SESSIONS_MAX = 5


def remove_old_sessions(folder: Path, sessions_max: int = SESSIONS_MAX) -> None:
    """Makes room for one session more: what was begun first goes first. Call it while no Ray runs
    in the folder. What cannot be removed stays."""
    sessions = sorted(each for each in folder.glob("session_*") if not each.is_symlink())
    for session in sessions[: max(0, len(sessions) + 1 - sessions_max)]:
        shutil.rmtree(session, ignore_errors=True)
