"""Calls to a shard: their version is read before anything else of them."""

import pickle
from types import ModuleType

import pytest

from tests.unit.ledger.shard.test_client import DONE, REFUSED, order
from tollgate.actors.ledger.law.outcomes import TurnedAway
from tollgate.actors.ledger.shard.call_format import (
    VERSION,
    OrdersRefused,
    UnknownCall,
    answers_of,
    call_of,
    format_version,
    orders_of,
    refusal,
    reply_of,
)


def test_orders_and_answers_come_as_they_were() -> None:
    orders, answers = [order(1), order(2)], [DONE, REFUSED, TurnedAway(3)]
    assert orders_of(call_of(orders)) == orders
    assert answers_of(reply_of(answers)) == answers
    assert call_of(orders)[:4] == VERSION


class _Trap:
    """Does harm when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("unpickled",)


@pytest.mark.parametrize(
    "call",
    [
        b"",
        b"\0\0",
        b"\0\0\0\1" + pickle.dumps(_Trap()),
        pickle.dumps(_Trap()),
        VERSION + b"no pickle",
        VERSION + b"ctollgate.actors.ledger.law.commands\nTeleport\n.",
        VERSION + b"cno.such.module\nTeleport\n.",
    ],
)
def test_a_call_of_another_release_is_told_from_ours(call: bytes) -> None:
    with pytest.raises(UnknownCall, match="version"):
        orders_of(call)


def test_every_release_understands_the_refusal() -> None:
    """Its first four bytes are no version, now and for ever."""
    assert refusal().startswith(b"\0\0\0\0this shard takes orders of version ")
    with pytest.raises(OrdersRefused, match=f"takes orders of version {VERSION.hex()}"):
        answers_of(refusal())


def _module(name: str, text: str) -> ModuleType:
    module = ModuleType(name)
    exec(text, vars(module))
    return module


CLASSES = """
from dataclasses import dataclass
from enum import Enum
@dataclass
class Order:
    amount: int
    note: str = ""
class Reason(Enum):
    FULL = 1
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("amount", "sum"),
        ("note: str", "note: bytes"),
        ('    note: str = ""\n', ""),
        ("class Order", "class Command"),
        ("FULL = 1", "FULL = 1; SPENT = 2"),
    ],
)
def test_what_orders_are_made_of_makes_the_version(before: str, after: str) -> None:
    version = format_version([_module("law", CLASSES)])
    assert version == format_version([_module("law", CLASSES)])
    assert version != format_version([_module("law", CLASSES.replace(before, after))])
