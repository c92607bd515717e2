"""The bytes of a call to a shard: a version, and behind it orders or their answers.

    version (4 bytes) ‖ pickled orders    →    version ‖ pickled answers, in order
    anything else                         →    00 00 00 00 ‖ the shard's version, as text

Web processes and shards of two releases can meet while one takes the other's place. The version is
read before anything is unpickled, and the answer to an unknown one is never another: so every
release, earlier and later ones, understands that nothing was done.

The version is a hash over what orders and their answers are made of: every class of the commands,
the outcomes and their values, with its fields and their types. So it is another one when one of
them changes, and nobody has to remember it.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from types import ModuleType

from tollgate.actors.kernel.hashing import digest
from tollgate.actors.ledger.law import commands, outcomes, values, webhook_law
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import OrderOutcome

_LENGTH = 4
# What unpickling makes of bytes that are no pickle, and of classes that are not there.
UNREADABLE = (
    *(pickle.UnpicklingError, EOFError, ImportError, AttributeError),
    *(LookupError, TypeError, ValueError),
)


def format_version(modules: Iterable[ModuleType]) -> bytes:
    """Of all classes of values that these modules define."""
    shapes = sorted(shape for module in modules for shape in _shapes(module))
    return bytes.fromhex(digest(*(shape.encode() for shape in shapes)))[:_LENGTH]


def _shapes(module: ModuleType) -> Iterator[str]:
    for name, kind in vars(module).items():
        if getattr(kind, "__module__", "") != module.__name__:
            continue
        if isinstance(kind, type) and is_dataclass(kind):
            yield f"{name}: {[(field.name, str(field.type)) for field in fields(kind)]}"
        elif isinstance(kind, type) and issubclass(kind, Enum):
            yield f"{name}: {[(member.name, str(member.value)) for member in kind]}"


VERSION = format_version((commands, webhook_law, outcomes, values))
_REFUSED = bytes(_LENGTH)
assert VERSION != _REFUSED, "change an order, and it is another one"


class OrdersRefused(Exception):  # noqa: N818 - a state of the world, not a mistake
    """A shard of another release took none of the orders; the text says which it takes."""


class UnknownCall(Exception):  # noqa: N818 - likewise
    """A call of another release."""


def call_of(orders: Sequence[Order]) -> bytes:
    return _framed(list(orders))


def orders_of(call: bytes) -> list[Order]:
    """Raises UnknownCall, also for what has the right version and cannot be unpickled."""
    if (version := call[:_LENGTH]) != VERSION:
        raise UnknownCall(f"version {version.hex()}, and not {VERSION.hex()}")
    try:
        orders: list[Order] = pickle.loads(call[_LENGTH:])
    except UNREADABLE as error:
        raise UnknownCall(f"version {VERSION.hex()}, but cannot be read: {error!r}") from error
    return orders


def reply_of(answers: Sequence[OrderOutcome]) -> bytes:
    return _framed(list(answers))


def refusal() -> bytes:
    """The answer to an UnknownCall."""
    return _REFUSED + f"this shard takes orders of version {VERSION.hex()}".encode()


def answers_of(reply: bytes) -> list[OrderOutcome]:
    """Raises OrdersRefused."""
    if reply[:_LENGTH] == _REFUSED:
        raise OrdersRefused(reply[_LENGTH:].decode(errors="replace"))
    answers: list[OrderOutcome] = pickle.loads(reply[_LENGTH:])
    return answers


def _framed(content: Sequence[Order] | Sequence[OrderOutcome]) -> bytes:
    return VERSION + pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
