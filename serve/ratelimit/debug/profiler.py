"""Looks into running processes from the outside, with py-spy: they need not cooperate.

They are not stopped for it either, so a stack may now and then be torn; a decision must not wait.
One look at a time: profiling costs CPU.
"""

import asyncio
import shutil
import sys
from asyncio.subprocess import PIPE
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory

SECONDS_MAX = 60
_SAMPLES_PER_S = 100
_STARTING_S = 20
"""The time beyond what was asked for that the profiler may take: it reads the symbols first."""


class ProfileFormat(Enum):
    """The formats of a recording. The value is py-spy's name of the format."""

    FLAMEGRAPH = "flamegraph"
    SPEEDSCOPE = "speedscope"
    RAW = "raw"
    TRACE = "chrometrace"


class ProfilingError(Exception):
    """There is no profile; the text is one line that says why and what to do."""


class ProfilerBusyError(ProfilingError):
    """Another look is under way."""


class ProfilingRefusedError(ProfilingError):
    """The operating system, or the installation, does not let this process look into others."""


class Profiler:
    """Runs py-spy. `program` None: the one beside this interpreter, or else on PATH."""

    def __init__(self, program: Path | None = None) -> None:
        self._program = program or _installed_program()
        self._lock = asyncio.Lock()

    async def record(self, pid: int, seconds: int, form: ProfileFormat) -> bytes:
        """A recording of `seconds` seconds, 1 to `SECONDS_MAX`, of a process of this machine.

        Raises ProfilingError and its kinds.
        """
        assert 1 <= seconds <= SECONDS_MAX, "the caller bounds the seconds"
        with TemporaryDirectory(prefix="tollgate-profile-") as folder:
            output = Path(folder, "profile")
            arguments = [
                *("record", "--nonblocking", "--pid", str(pid), "--duration", str(seconds)),
                *("--rate", str(_SAMPLES_PER_S), "--format", form.value, "--output", str(output)),
            ]
            await self._run(arguments, seconds + _STARTING_S)
            return output.read_bytes()

    async def stacks(self, pid: int) -> bytes:
        """The stacks of every thread of a process of this machine, as text."""
        return await self._run(["dump", "--nonblocking", "--pid", str(pid)], _STARTING_S)

    async def _run(self, arguments: list[str], deadline_s: float) -> bytes:
        """Run py-spy and give its output."""
        if self._lock.locked():
            raise ProfilerBusyError("another profile is being taken; try again when it is done")
        if self._program is None:
            raise ProfilingRefusedError("py-spy is not installed; install it to profile")
        async with self._lock:
            process = await asyncio.create_subprocess_exec(
                str(self._program), *arguments, stdout=PIPE, stderr=PIPE
            )
            try:
                async with asyncio.timeout(deadline_s):
                    output, complaint = await process.communicate()
            except TimeoutError:
                raise ProfilingError(f"py-spy did not end within {deadline_s} s") from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if process.returncode != 0:
            raise _explained(complaint.decode(errors="replace"))
        return output


def _installed_program() -> Path | None:
    beside = Path(sys.executable).with_name("py-spy")
    if beside.exists():
        return beside
    found = shutil.which("py-spy")
    return Path(found) if found else None


def _explained(complaint: str) -> ProfilingError:
    """py-spy's complaint as an error of ours."""
    lowered = complaint.lower()
    if "permission denied" in lowered or "operation not permitted" in lowered:
        return ProfilingRefusedError(
            "profiling is not permitted (ptrace): run as root, or grant SYS_PTRACE, "
            "or set kernel.yama.ptrace_scope to 0"
        )
    first_line = complaint.strip().partition("\n")[0] or "no reason given"
    return ProfilingError(f"py-spy failed: {first_line.removeprefix('Error: ')}")
