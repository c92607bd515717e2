"""From a command to what became of it: the order, and its rejection if it was not done (part D,
Idempotency-Key; F4).

    Done         handed back; replies.py makes the reply of it
    Refusal      400, or what its kind says
    TurnedAway   503: nothing was done
    Indefinite   503: it may have been done; the same idempotency key tells

Every order has an operation id of its own, by which the ledger's client asks again; the caller's
idempotency key is another matter, and belongs to their app and the book.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.kernel.call_parts import PARTS, CallPart, note_part
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.law.commands import Command, Order
from tollgate.actors.ledger.law.outcomes import (
    Done,
    Indefinite,
    OrderOutcome,
    Refusal,
    RefusalReason,
    TurnedAway,
)
from tollgate.actors.ledger.law.values import BookId, Origin
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.rejections import (
    AttemptFailed,
    BadRequest,
    FieldError,
    Forbidden,
    KeyReused,
    LostRace,
    NotFound,
    Rejection,
    Unavailable,
)
from tollgate.serve.payments.reference.processing_errors import ProcessingErrors
from tollgate.serve.payments.secrets.generator import SecretGenerator

DEADLINE_S = 10.0
RETRY_AFTER_S = 2


class Ledger(Protocol):
    """The way to the books."""

    async def execute(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        """The outcome of each order, in order; at the latest at its deadline."""


@dataclass(frozen=True, slots=True)
class CommandGateway:
    """Gives orders in the name of callers."""

    ledger: Ledger
    mint: SecretGenerator
    errors: ProcessingErrors
    clock: Clock

    async def give(
        self,
        call: Call,
        book: BookId,
        command: Command,
        body: Body,
        *,
        is_test: bool,
        is_checked: bool = False,
        idempotency_key: str | None = None,
    ) -> Done:
        """Executes a command. `is_checked`: the state that was read allows it, so that a refusal
        means a lost race. `idempotency_key`: in place of the caller's. Raises the refusal."""
        key = call.idempotency_key if idempotency_key is None else idempotency_key
        order = Order(
            operation=self.mint.operation(),
            book=book,
            command=command,
            origin=Origin(call.caller.app, call.caller.key_last4, call.address, call.request_id),
            time_left_ms=int(DEADLINE_S * 1000),
            idempotency_key=key,
            fingerprint=call.fingerprint(body) if key else "",
            is_checked=is_checked,
            is_test=is_test,
        )
        call.record.merchant, call.record.operation = book, order.operation
        answer = await self._executed(order)
        if isinstance(answer, Done):
            return answer
        raise self._rejection(answer, has_key=bool(key))

    async def _executed(self, order: Order) -> OrderOutcome:
        """The outcome; a part of a call that is traced."""
        parts = PARTS.get()
        if parts is None:
            (answer,) = await self.ledger.execute([order])
            return answer
        begun_s = self.clock.monotonic_s()
        (answer,) = await self.ledger.execute([order])
        outcome = type(answer).__name__ if not isinstance(answer, Refusal) else answer.kind.name
        told = (("tollgate.operation", order.operation), ("tollgate.outcome", outcome.lower()))
        name = f"ledger {type(order.command).__name__}"
        failure = answer.message if isinstance(answer, Indefinite) else ""
        note_part(parts, CallPart(name, begun_s, self.clock.monotonic_s(), told, failure))
        return answer

    def _rejection(self, answer: Refusal | TurnedAway | Indefinite, *, has_key: bool) -> Rejection:
        if isinstance(answer, TurnedAway):
            return Unavailable("busy; nothing was done, try again", max(1, answer.retry_after_s))
        if isinstance(answer, Indefinite):
            how = "the same Idempotency-Key" if has_key else "a look before you try again"
            return Unavailable(f"the outcome is not known yet: {how} tells", RETRY_AFTER_S)
        return self._refusal(answer)

    def _refusal(self, refused: Refusal) -> Rejection:
        match refused.kind:
            case RefusalReason.CONSTRAINT | RefusalReason.UNCONVERTIBLE:
                return BadRequest(FieldError(refused.field, refused.message))
            case RefusalReason.UNAPPROVED if not refused.code:
                return BadRequest(FieldError(refused.field, refused.message))
            case RefusalReason.UNAPPROVED:
                return attempt_failed(self.errors, refused.code, refused.message)
            case RefusalReason.PROCESSING:
                return attempt_failed(self.errors, refused.code)
            case RefusalReason.LOST_RACE | RefusalReason.AT_NETWORK:
                return LostRace(refused.message)
            case RefusalReason.NOT_FOUND:
                return NotFound(refused.message)
            case RefusalReason.FORBIDDEN:
                return Forbidden(refused.message)
            case RefusalReason.KEY_REUSED:
                return KeyReused(refused.message)
            case RefusalReason.BROKEN:
                return Rejection(refused.message)


def attempt_failed(errors: ProcessingErrors, code: int, why: str = "") -> AttemptFailed:
    """A processing error of which nothing was stored. `why`: more than its message says."""
    error = errors.error(code)
    return AttemptFailed(
        code,
        f"{error.message}: {why}" if why else error.message,
        error.text or error.message,
        is_client=error.is_client,
        is_merchant=error.is_merchant,
    )
