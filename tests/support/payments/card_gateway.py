"""What a gateway of a card network does, without a wire: the rules of I5, and what they led to."""

from dataclasses import dataclass, field
from typing import Any

Answer = dict[str, Any]
REFUSED_12: Answer = {"outcome": "refused", "code": 12}


@dataclass
class CardGateway:
    """`answers`: by operation, what was told first and is told ever after. `done`: every move that
    was carried out, each time that it was. `refused_amounts`: declined with error 8."""

    refused_amounts: frozenset[int] = frozenset()
    answers: dict[str, Answer] = field(default_factory=dict)
    done: list[tuple[str, str, int]] = field(default_factory=list)
    reversed: list[str] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def answer(self, what: str, operation: Answer) -> Answer:
        """To a call of one of the three kinds."""
        self.asked.append((what, operation["id"]))
        if what == "operations":
            return self._carry_out(operation)
        if what == "enquiries":
            return self.answers.setdefault(operation["id"], REFUSED_12)
        return self._reverse(operation)

    def _carry_out(self, operation: Answer) -> Answer:
        known = self.answers.get(operation["id"])
        if known is not None:
            return known
        amount = operation["amount"]["value"]
        if amount in self.refused_amounts:
            return self.answers.setdefault(operation["id"], {"outcome": "refused", "code": 8})
        self.done.append((operation["id"], operation["action"], amount))
        told = {"outcome": "approved", "reference": f"ref-{operation['id']}"}
        if operation["action"] == "authorise":
            told["cardToken"] = operation.get("cardToken") or "token-of-the-network"
        return self.answers.setdefault(operation["id"], told)

    def _reverse(self, operation: Answer) -> Answer:
        known = self.answers.setdefault(operation["id"], REFUSED_12)
        if known["outcome"] == "approved" and operation["id"] not in self.reversed:
            self.reversed.append(operation["id"])
        return {"outcome": "approved", "reference": f"reversal-{operation['id']}"}

    def holds(self, action: str) -> list[int]:
        """The amounts of the moves of a kind that stand."""
        return [
            amount
            for each, kind, amount in self.done
            if kind == action and each not in self.reversed
        ]
