"""Moves that waited for a card network, followed from intent to end (I1 to I3).

    intended      is remembered, with the merchant's pricing of then: its fee is made of that
    concluded     once, by the same kind of move of the same amount, or by the network's refusal

Those of one book that are open are kept in memory. There are few: calls that wait are limited, and
a network that does not answer is left alone (I5).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tollgate.actors.ledger.proof.money.exchange_audit import Event

INTENDED, REFUSED = "network.intended", "network.refused"
OF_INTENTS = frozenset({INTENDED, REFUSED})


@dataclass(frozen=True, slots=True)
class _Open:
    then: Event
    pricing: Event


@dataclass(slots=True)
class IntentAudit:
    """Of one book, event by event."""

    _open: dict[str, _Open] = field(default_factory=dict)

    def follow(self, kind: str, event: Event, pricing: Event) -> tuple[Event, list[str]]:
        """The pricing that an event's fee is made of, and what is wrong with its intent."""
        if kind == INTENDED:
            self._open[event["intent"]] = _Open(event["then"], pricing)
            return pricing, []
        name = event.get("intent")
        if name is None:
            return pricing, []
        found = self._open.pop(name, None)
        if found is None:
            return pricing, [f"it ends the intent {name}, which is not open (I3)"]
        if not _is_end(kind, event, found.then):
            return found.pricing, [f"it is not the move that the intent {name} is of (I1)"]
        return found.pricing, []


def _is_end(kind: str, event: Event, then: Event) -> bool:
    if kind == REFUSED:
        return bool(event["transaction"] == then["transaction"])
    if kind == "transaction.created":
        return _is_of(kind, then) and _price(event) == _price(then)
    is_same = event["transaction"] == then["transaction"]
    return _is_of(kind, then) and is_same and _price(event) == _price(then)


def _is_of(kind: str, then: Event) -> bool:
    """True if what was intended is of this kind; its tag has a version at its end."""
    return str(then["event"]).rpartition("/")[0] == kind


def _price(event: Event) -> tuple[object, object]:
    of: Mapping[str, object] = event.get("sum", event)
    return of["currency"], of["amount"]
