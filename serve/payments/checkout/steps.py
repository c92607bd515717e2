"""The steps of a payment in a browser, in order, and the hints that each gives (part H).

    hints before   step                      gives
    0              authorize-integration     1
    1              tds-enrolled              1
    2              tds-fingerprint           4
    6              tds-pre-challenge         1
    7              tds-challenge             1
    8              tds-post-challenge        1
    9              authorize                 1      and with 10 there is a transaction

Clients count them. A step that is left out (a bank that needs no confirmation) has its hints given
by the step before.
"""

from collections.abc import Sequence
from enum import StrEnum


class Step(StrEnum):
    """The steps, by their names on the wire."""

    INTEGRATION = "authorize-integration"
    ENROLMENT = "tds-enrolled"
    FINGERPRINT = "tds-fingerprint"
    PRE_CHALLENGE = "tds-pre-challenge"
    CHALLENGE = "tds-challenge"
    POST_CHALLENGE = "tds-post-challenge"
    AUTHORISATION = "authorize"


STEPS: Sequence[Step] = tuple(Step)
HINTS_OF = {step: 4 if step is Step.FINGERPRINT else 1 for step in STEPS}
HINTS_TOTAL = sum(HINTS_OF.values())


class ChallengeType(StrEnum):
    """The ways to take a step."""

    FETCH = "fetch"
    BACKGROUND_FRAME = "background-iframe"
    FRAME = "iframe"
    REDIRECT = "redirect"
    POLL = "poll"


# The best first. A client that cannot do one takes the next.
TYPES_OF = {
    Step.INTEGRATION: (ChallengeType.FETCH,),
    Step.ENROLMENT: (ChallengeType.FETCH,),
    Step.FINGERPRINT: (ChallengeType.BACKGROUND_FRAME, ChallengeType.FETCH),
    Step.PRE_CHALLENGE: (ChallengeType.FETCH,),
    Step.CHALLENGE: (ChallengeType.FRAME, ChallengeType.REDIRECT, ChallengeType.POLL),
    Step.POST_CHALLENGE: (ChallengeType.FETCH,),
    Step.AUTHORISATION: (ChallengeType.FETCH,),
}


def steps_until(step: Step) -> Sequence[Step]:
    """The steps before one."""
    return STEPS[: STEPS.index(step)]


def steps_between(step: Step, following: Step) -> Sequence[Step]:
    """A step, and those after it up to another."""
    return STEPS[STEPS.index(step) : STEPS.index(following)]
