"""The way of a front's messages to a partition and back, whatever carries them."""

from collections.abc import Callable
from typing import Protocol

OnReply = Callable[[bytes | None], None]
"""Is called once, from any thread, with the mail that has come; None: the message is lost. It must
not be kept waiting."""


class Channel(Protocol):
    """To one partition. Neither call blocks, nor raises."""

    def send(self, message: bytes, on_reply: OnReply) -> None:
        """Carry a message there, and bring back the front's mail."""

    def listen(self, front: str, on_reply: OnReply) -> None:
        """Stand there until mail comes for the front."""
