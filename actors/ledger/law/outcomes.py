"""What becomes of an order: a closed set.

Done        it is durable; `body` is the reply's JSON, `is_replay` when it was done before
Refused     nothing changed; the caller is told why
Busy        nothing changed; ask again later (mailbox full, deadline passed)
Indefinite  it may or may not have been done: ask again with the same operation id
"""

from dataclasses import dataclass
from enum import Enum


class RefusalKind(Enum):
    """Why a valid command is refused; doors turn it into their statuses (part A)."""

    CONSTRAINT = "the state of the book does not allow it"
    LOST_RACE = "it was allowed when it was checked, and another command came first"
    NOT_FOUND = "the entity is not in this book"
    FORBIDDEN = "the app has no access to this book"
    KEY_REUSED = "the idempotency key was used for another request"
    BROKEN = "the command breaks a rule of the books, which is our mistake"
    PROCESSING = "a processing error of part C, before anything was stored"


@dataclass(frozen=True, slots=True)
class Done:
    """`status` and `body` are what the door answers, byte for byte, now and at every replay."""

    status: int
    body: bytes
    is_replay: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """`field`: the dotted path of what is wrong, or empty. `code`: of part C, or 0."""

    kind: RefusalKind
    message: str
    field: str = ""
    code: int = 0


@dataclass(frozen=True, slots=True)
class Busy:
    retry_after_s: int


@dataclass(frozen=True, slots=True)
class Indefinite:
    message: str


Answer = Done | Refused | Busy | Indefinite
