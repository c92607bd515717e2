"""What the books are made of cannot be changed once it is made."""

from dataclasses import is_dataclass
from typing import get_args

import pytest
from msgspec import Struct

from tollgate.actors.ledger.book.entities import AppKey, Entity
from tollgate.actors.ledger.book.head import Head, Member, Merchant, User
from tollgate.actors.ledger.law.commands import Command
from tollgate.actors.ledger.law.events import Event, SettledAmount
from tollgate.actors.ledger.law.lots import Lot, Taking
from tollgate.actors.ledger.law.money import Exchange, Fee
from tollgate.actors.ledger.law.transaction import Action

STRUCTS: list[type[Struct]] = [
    *get_args(Event),
    *get_args(Entity),
    *(Action, AppKey, Exchange, Fee, Head, Lot, Member, Merchant, SettledAmount, Taking, User),
]


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: kind.__name__)
def test_structs_are_frozen(kind: type[Struct]) -> None:
    assert kind.__struct_config__.frozen


@pytest.mark.parametrize("kind", get_args(Command), ids=lambda kind: kind.__name__)
def test_commands_are_frozen(kind: type) -> None:
    assert is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]  # it has no stub


def test_every_event_has_a_type_and_a_schema_version() -> None:
    tags = [str(kind.__struct_config__.tag) for kind in get_args(Event)]
    assert len(set(tags)) == len(tags)
    for tag in tags:
        subject, _, rest = tag.partition(".")
        what, _, version = rest.partition("/")
        assert subject.isidentifier()
        assert what.isidentifier()
        assert int(version) >= 1
