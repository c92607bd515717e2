"""Roles of a merchant's members: what an app that has access may do, beyond reading.

    role        reads   refunds   everything else
    owner         x        x            x
    refunds       x        x            -
    read-only     x        -            -

Any app may take its own access away, except the last owner among others: a merchant whose apps are
no owners could be changed by nobody. Who has no role of its own is an owner, as all were before
there were roles. Users have roles as well, which say what they were invited to; it is apps that
call.
"""

from enum import Enum

from tollgate.actors.ledger.law.values import Role


class Act(Enum):
    """The kinds of what is done to a merchant."""

    READ = "read"
    REFUND = "refund"
    MANAGE = "manage"


_ALLOWED = {
    Role.OWNER: frozenset(Act),
    Role.REFUNDS: frozenset({Act.READ, Act.REFUND}),
    Role.READ_ONLY: frozenset({Act.READ}),
}


def may(role: Role, act: Act) -> bool:
    """Tells whether a member with this role may do it."""
    return act in _ALLOWED[role]


def forbidden_words(role: Role) -> str:
    """The words in which a member hears that its role does not allow something."""
    what = "reads and refunds" if may(role, Act.REFUND) else "reads"
    return (
        f"your app's role at this merchant is {role.value}, which {what} and no more: ask an owner"
    )
