"""Moves that a card network has to agree to: intent, network, result, reply (part I).

the intent is durable      with the caller's idempotency key: a repetition finds it, and asks
                           nobody anything
the network is asked       once, by the call whose intent it is
its decision is durable    told by this call, or by an enquiry; whichever is first
the reply                  or that the outcome is unknown, which the same key tells later
"""

from tollgate.actors.ledger.book.entities import Intent, entity_of_row
from tollgate.actors.ledger.law.commands import Capture, Intend, Movement, Refund, Void
from tollgate.actors.ledger.law.outcomes import Done, DoneKind
from tollgate.actors.ledger.law.values import BookId, NetworkAction
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext, TransactionAccess, intent_in
from tollgate.serve.payments.api.rejections import Unavailable
from tollgate.serve.payments.network.card import PlainCard
from tollgate.serve.payments.network.card_network import CardNetwork, Unknown, operation_of

RETRY_AFTER_S = 60
_ACTIONS: dict[type[Capture | Refund | Void], NetworkAction] = {
    Capture: NetworkAction.CAPTURE,
    Refund: NetworkAction.REFUND,
    Void: NetworkAction.VOID,
}


async def follow(
    context: ApiContext,
    call: Call,
    entered: TransactionAccess,
    command: Capture | Refund | Void,
    body: Body,
    *,
    is_checked: bool,
) -> Done:
    """Orders a move on a transaction, of the network that has authorised it. What that decides at
    once, and what no network has authorised, is one commit. Raises Unavailable, the refusal."""
    book, network = entered.merchant.id, _network(context, entered)
    if network is None or network.is_immediate(_ACTIONS[type(command)], command.amount):
        return await context.execute(call, book, command, body, is_checked=is_checked)
    return await move(context, call, book, command, body, network, is_checked=is_checked)


def _network(context: ApiContext, entered: TransactionAccess) -> CardNetwork | None:
    name = entered.transaction.network
    if not name:
        return context.networks.test if entered.merchant.is_test else None
    if (network := context.networks.named(name)) is not None:
        return network
    why = f"the card network {name}, which authorised the transaction, is not configured any more"
    raise Unavailable(why, RETRY_AFTER_S)


async def move(
    context: ApiContext,
    call: Call,
    book: BookId,
    command: Movement,
    body: Body,
    network: CardNetwork,
    card: PlainCard | None = None,
    *,
    is_checked: bool = False,
    idempotency_key: str | None = None,
) -> Done:
    """Carries out a move that is not decided at once. Raises NotAnswered, the refusal."""
    is_test = (await context.entities.merchant(book)).is_test
    intended = await context.commands.give(
        call,
        book,
        Intend(command, network.name),
        body,
        is_test=is_test,
        is_checked=is_checked,
        idempotency_key=idempotency_key,
    )
    if intended.kind is not DoneKind.INTENDED or intended.is_replay:
        return await context.outcome(intended)
    row = await context.store.entity("intent", intent_in(intended))
    intent = None if row is None else entity_of_row(row)
    if not isinstance(intent, Intent):
        return await context.outcome(intended)
    answer = await network.carry_out(operation_of(intent), card)
    if isinstance(answer, Unknown):
        return await context.outcome(intended)
    settled = await context.conclusions.conclude(
        book, intent.id, answer, is_test=is_test, why=call.request_id
    )
    return settled or await context.outcome(intended)
