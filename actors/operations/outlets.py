"""The ways by which statistics leave the process that sums them up; what is behind them is in
`serve/`."""

from typing import Protocol


class OpenPort(Protocol):
    """A listening port of this process."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    async def stop(self) -> None: ...


class Pump(Protocol):
    """Sends statistics on, at intervals, from a task of its own."""

    @property
    def has_ended(self) -> bool:
        """True when it was started, and does nothing any more without having been stopped."""

    def start(self) -> None: ...

    async def stop(self) -> None:
        """Send what is left, and end."""
