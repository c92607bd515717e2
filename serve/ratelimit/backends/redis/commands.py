"""Hits as commands of Redis, and its replies as counts (B6).

    +a     INCRBY name a, EXPIRE name seconds     (the expiry begins anew with every hit)
    0      GET name                               (leaves no trace)
    -a     a script: DECRBY, never below 0; a counter that is not there stays away

A counter's expiry is the length of its window, and a random number of seconds more: its name says
which window it belongs to, so it may well outlive it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha1

from redis.exceptions import ResponseError

from tollgate.actors.ratelimit.counting.counters import LimitedHits, Unreachable
from tollgate.actors.ratelimit.decision.counter_keys import counter_name, window_ending

Command = tuple[bytes | int, ...]
Reply = object
"""An integer, bytes, None; or the error that Redis answered a command with."""

# It takes the number's own text where it can, for Lua has no whole numbers beyond 2**53; and sets
# nothing, so that the expiry stays as it is.
REFUND = b"""\
local count = redis.call('GET', KEYS[1])
if not count then return 0 end
if (tonumber(count) or 0) < tonumber(ARGV[1]) then
  return redis.call('DECRBY', KEYS[1], count)
end
return redis.call('DECRBY', KEYS[1], ARGV[1])
"""
INT64_MAX = 2**63 - 1
"""The largest number that Redis takes, and counts to."""
OVERFLOW = "increment or decrement would overflow"
REFUND_SHA = sha1(REFUND, usedforsecurity=False).hexdigest().encode()


@dataclass(frozen=True, slots=True)
class Naming:
    """The rules by which counters are named and expire. `draw`: a random whole number below a
    bound."""

    has_calendar_months: bool
    jitter_max_s: int
    draw: Callable[[int], int]

    def name(self, key: bytes, end_s: int) -> tuple[bytes, int]:
        """The counter's name in the window that ends then, and the length of that."""
        window = window_ending(key, end_s, has_calendar_months=self.has_calendar_months)
        return counter_name(key, window.start_s), end_s - window.start_s

    def expiry_s(self, length_s: int) -> int:
        """The time after which a counter of a window of this length is forgotten."""
        return length_s + (self.draw(self.jitter_max_s) if self.jitter_max_s else 0)


@dataclass(slots=True)
class Pipeline:
    """Commands for one server, sent together. `places`: where the reply stands that has the count
    of each operation; `excess`: what Redis was not told of some, for it was too much."""

    naming: Naming
    commands: list[Command] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    excess: dict[int, int] = field(default_factory=dict)

    def add(self, name: bytes, addend: int, length_s: int) -> None:
        """Put an operation behind those that are there."""
        if addend > INT64_MAX:
            self.excess[len(self.places)] = addend - INT64_MAX
            addend = INT64_MAX
        self.places.append(len(self.commands))
        if addend > 0:
            self.commands.append((b"INCRBY", name, addend))
            self.commands.append((b"EXPIRE", name, self.naming.expiry_s(length_s)))
        elif addend:
            self.commands.append((b"EVALSHA", REFUND_SHA, 1, name, min(-addend, INT64_MAX)))
        else:
            self.commands.append((b"GET", name))

    def add_hits(self, hits: LimitedHits) -> None:
        """Put operations on counters of one unit and one window behind those that are there."""
        if not hits.keys:
            return
        window = window_ending(
            hits.keys[0], hits.end_s, has_calendar_months=self.naming.has_calendar_months
        )
        length_s = hits.end_s - window.start_s
        for key, addend in zip(hits.keys, hits.addends, strict=True):
            self.add(counter_name(key, window.start_s), addend, length_s)

    def counts(self, replies: Sequence[Reply]) -> list[int | Unreachable]:
        """The count after each operation, out of the replies to all commands."""
        counts = [count_of(replies[place]) for place in self.places]
        for number, excess in self.excess.items():
            count = counts[number]
            if isinstance(count, int):
                counts[number] = count + excess
        return counts

    def expiry_error(self, replies: Sequence[Reply]) -> Reply:
        """The error in answer to an EXPIRE whose hit was counted; None: there is none."""
        for at, reply in enumerate(replies):
            if isinstance(reply, ResponseError):
                is_expiry = self.commands[at][0] == b"EXPIRE"
                if is_expiry and type(replies[at - 1]) is int:
                    return reply
        return None


def packed(commands: Sequence[Command]) -> bytes:
    """The commands as they are sent. (The client's own way to do this takes twice as long and more,
    for it takes whatever there is for an argument.)"""
    parts = []
    for command in commands:
        parts.append(b"*%d\r\n" % len(command))
        for word in command:
            text = word if isinstance(word, bytes) else b"%d" % word
            parts.append(b"$%d\r\n%b\r\n" % (len(text), text))
    return b"".join(parts)


def key_of(command: Command) -> bytes:
    """The name of the counter that a command is about."""
    name = command[3] if command[0] in (b"EVALSHA", b"EVAL") else command[1]
    assert isinstance(name, bytes), "names are bytes"
    return name


def loading(command: Command) -> Command:
    """The call of a script by its text, which also loads it, instead of by its name."""
    return (b"EVAL", REFUND, *command[2:])


def count_of(reply: Reply) -> int | Unreachable:
    """The count that a reply tells, or the reason why it tells none."""
    if type(reply) is int:
        return reply
    if reply is None:
        return 0
    if isinstance(reply, bytes):
        try:
            return int(reply)
        except ValueError:
            return Unreachable("ERR value is not an integer or out of range")
    if isinstance(reply, ResponseError) and OVERFLOW in str(reply):
        return INT64_MAX
    return Unreachable(said(reply))


def said(error: Reply) -> str:
    """The error as Redis said it, with the code that the client takes off its beginning."""
    code, text = getattr(error, "status_code", None), str(error)
    return text if code is None or text.startswith(code) else f"{code} {text}"


def shaped(
    batch: Sequence[LimitedHits], counts: Sequence[int | Unreachable]
) -> list[list[int | Unreachable]]:
    """Counts in the shape of the batch that asked for them."""
    answer, position = [], 0
    for hits in batch:
        answer.append(list(counts[position : position + len(hits.keys)]))
        position += len(hits.keys)
    return answer
