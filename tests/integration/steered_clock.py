"""A clock that a test steers from outside the process that reads it."""

from pathlib import Path

from tollgate.actors.kernel.clock import SystemClock


class SteeredClock:
    """The system's clock, ahead by the seconds that stand in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._clock = SystemClock()
        self.set_ahead(0)

    def set_ahead(self, seconds: float) -> None:
        draft = self._file.with_suffix(".new")
        draft.write_text(str(seconds))
        draft.replace(self._file)

    def now_s(self) -> float:
        return self._clock.now_s() + float(self._file.read_text())

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s() + float(self._file.read_text())
