"""Why a call gets no decision: a closed set, with the reference's texts (B15)."""

from dataclasses import dataclass
from enum import Enum


class RefusalReason(Enum):
    """What stands behind a refusal; doors turn it into their status codes."""

    INVALID = "the request breaks a rule of the protocol or a bound"
    NOT_CONFIGURED = "no rules have been loaded yet"
    BACKEND = "the counters could not be reached in time"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that ends with an error, and its text for the caller."""

    kind: RefusalReason
    message: str


EMPTY_DOMAIN = Refusal(RefusalReason.INVALID, "rate limit domain must not be empty")
NO_DESCRIPTORS = Refusal(RefusalReason.INVALID, "rate limit descriptor list must not be empty")
NOT_CONFIGURED = Refusal(RefusalReason.NOT_CONFIGURED, "no rate limit configuration loaded")
UNKNOWN_OVERRIDE_UNIT = Refusal(
    RefusalReason.INVALID,
    "the limit of a descriptor has no valid unit: give one of SECOND, MINUTE, HOUR, DAY, WEEK, "
    "MONTH, YEAR",
)
