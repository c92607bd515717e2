"""One Redis: a server alone, or the master that sentinels know. Commands in, replies out."""

from collections.abc import Callable, Sequence
from typing import Protocol

from redis.connection import BlockingConnectionPool
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from tollgate.serve.ratelimit.backends.redis.commands import Command, Reply, packed

PING: tuple[Command, ...] = ((b"PING",),)


class NoAnswer(Exception):  # noqa: N818 (it reads as what it is)
    """A server did not answer. `is_silence`: it cost the whole of the time-out."""

    def __init__(self, text: str, *, is_silence: bool) -> None:
        super().__init__(text)
        self.is_silence = is_silence


class RedisServer(Protocol):
    """A Redis that counters are in, however it is laid out. Thread-safe."""

    @property
    def is_whole(self) -> bool:
        """False when a part of it did not answer."""

    def run(self, commands: Sequence[Command]) -> list[Reply]:
        """The replies to these commands, in their order, errors among them. Raises NoAnswer."""

    def ping(self) -> None:
        """See that all of it is there. Raises NoAnswer."""

    def close(self) -> None:
        """Close all connections."""


class SingleServer:
    """A RedisServer that one address leads to. `pipeline_max`: commands that are sent together; 0:
    all of them."""

    is_whole = True

    def __init__(
        self, pool: BlockingConnectionPool, *, pipeline_max: int, closes_on_readonly: bool
    ) -> None:
        self._pool = pool
        self._pipeline_max = pipeline_max
        self._closes_on_readonly = closes_on_readonly

    def run(self, commands: Sequence[Command]) -> list[Reply]:
        return answered(lambda: self._run(commands))

    def ping(self) -> None:
        (reply,) = self.run(PING)
        if isinstance(reply, ResponseError):
            raise NoAnswer(str(reply), is_silence=False)

    def close(self) -> None:
        self._pool.disconnect()

    def _run(self, commands: Sequence[Command]) -> list[Reply]:
        connection = self._pool.get_connection()  # type: ignore[no-untyped-call]
        is_read = False
        replies: list[Reply] = []
        try:
            step = self._pipeline_max or len(commands)
            for start in range(0, len(commands), step):
                part = commands[start : start + step]
                connection.send_packed_command([packed(part)])
                for _ in part:
                    try:
                        replies.append(connection.read_response(disable_decoding=True))
                    except ResponseError as error:
                        replies.append(error)
            # Another connection may lead to who is the master now.
            is_misled = any(type(each) is ReadOnlyError for each in replies)
            is_read = not (is_misled and self._closes_on_readonly)
        finally:
            if not is_read:
                # What is still on its way would be taken for the answer to the next commands.
                connection.disconnect()
            self._pool.release(connection)  # type: ignore[no-untyped-call]
        return replies


def answered(run: Callable[[], list[Reply]]) -> list[Reply]:
    """What `run` returns. Raises NoAnswer in the place of the client's errors."""
    try:
        return run()
    except (RedisTimeoutError, TimeoutError) as error:
        raise NoAnswer(str(error), is_silence=True) from None
    except (RedisConnectionError, RedisError, OSError) as error:
        raise NoAnswer(str(error), is_silence=False) from None
    except (ValueError, TypeError, LookupError, ArithmeticError, MemoryError) as error:
        # The client meets a reply, or an address in one, that is none of the protocol.
        text = f"a reply that is none: {type(error).__name__}: {error}"
        raise NoAnswer(text, is_silence=False) from None
