"""Double entry: what an event does to the accounts of its book.

    x in the transaction's currency T, worth y in the merchant's funding currency F; fee f in F

    capture, dispute won   clearing:T -x   fx:T +x   fx:F -y   merchant:F +y-f   fees:F +f
    refund, dispute        clearing:T +x   fx:T -x   fx:F +y   merchant:F -y-f   fees:F +f
    dispute lost           nothing more
    payout of p            merchant:F -p   paid_out:F +p

When T is F, with the same exponent, y is x and the two fx legs are left out; with another one, the
two are different units (M9). The postings of an
entry sum up to zero per currency (M4), so all accounts of all books together do too (M8).
`merchant:F` is the merchant's balance: the sum of the balances of its lines, at every entry (M2).
`clearing` is what the card network owes us, below zero; `fees` are ours; `fx` holds what was bought
of T and paid in F.
"""

from collections.abc import Mapping

from tollgate.actors.ledger.law import events
from tollgate.actors.ledger.law.exponents import posted_currency
from tollgate.actors.ledger.law.rows import Posting
from tollgate.actors.ledger.law.values import AMOUNT_MAX

CLEARING = "clearing"
FX = "fx"
MERCHANT = "merchant"
FEES = "fees"
PAID_OUT = "paid_out"


def postings_of(event: events.Event) -> tuple[Posting, ...]:
    """The legs of an event's entry, in the order of the table; none for most events."""
    match event:
        case events.Captured():
            return _settled(event.sum, 1, event.fee.total)
        case events.Refunded():
            return _settled(event.sum, -1, 0)
        case events.DisputeOpened():
            return _settled(event.sum, -1, event.fee.total)
        case events.DisputeWon():
            return _settled(event.sum, 1, 0)
        case events.PaidOut():
            unit = posted_currency(event.currency, event.exponent)
            return (
                Posting(MERCHANT, unit, -event.amount),
                Posting(PAID_OUT, unit, event.amount),
            )
        case _:
            return ()


def balance_of(event: events.Booked) -> int:
    """The effect of an event on the merchant's balance: the balance of its line."""
    match event:
        case events.Captured():
            return event.sum.worth - event.fee.total
        case events.Refunded():
            return -event.sum.worth
        case events.DisputeOpened():
            return -event.sum.worth - event.fee.total
        case events.DisputeWon():
            return event.sum.worth
        case events.DisputeLost():
            return 0
        case events.PaidOut():
            return -event.amount


def _settled(sum_: events.SettledAmount, sign: int, fee: int) -> tuple[Posting, ...]:
    amount, worth = sign * sum_.amount, sign * sum_.worth
    unit = posted_currency(sum_.currency, sum_.exponent)
    funding = posted_currency(sum_.funding, sum_.funding_exponent)
    legs = [Posting(CLEARING, unit, -amount)]
    if unit != funding or amount != worth:
        legs.append(Posting(FX, unit, amount))
        legs.append(Posting(FX, funding, -worth))
    legs.append(Posting(MERCHANT, funding, worth - fee))
    if fee:
        legs.append(Posting(FEES, funding, fee))
    return tuple(legs)


def posted(accounts: Mapping[str, int], postings: tuple[Posting, ...]) -> Mapping[str, int]:
    """The balances after the postings."""
    if not postings:
        return accounts
    balances = dict(accounts)
    for posting in postings:
        account = f"{posting.account}:{posting.currency}"
        balances[account] = balances.get(account, 0) + posting.amount
    return balances


def overflows(accounts: Mapping[str, int], postings: tuple[Posting, ...]) -> bool:
    """Tells whether a leg, or a balance after it, is beyond what readers of JSON hold exactly."""
    return any(
        abs(posting.amount) > AMOUNT_MAX
        or abs(accounts[f"{posting.account}:{posting.currency}"]) > AMOUNT_MAX
        for posting in postings
    )


def merchant_balance(accounts: Mapping[str, int]) -> int:
    """The merchant's balance, in minor units of the funding currency: of a book, that is one unit,
    though what was posted before units were told apart has another name."""
    return sum(amount for name, amount in accounts.items() if name.startswith(f"{MERCHANT}:"))
