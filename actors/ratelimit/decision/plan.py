"""A request's plan: the counters to hit and what else follows from its bytes and the rules alone.

A plan is made once and used many times, by as many threads as there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.counter_keys import UNIT_SLOTS
from tollgate.actors.ratelimit.rules.descriptors import RateLimitRequest
from tollgate.actors.ratelimit.statistics.tallies import RuleTally

# Each level costs a Struct up to three messages, and protobuf reads 100 inside each other.
METADATA_DEPTH_MAX = 30


class RefusalReason(Enum):
    """The reason of a refusal; fronts turn it into their status codes."""

    INVALID = "the request breaks a rule of the protocol or a bound"
    UNDECODABLE = "the request is no message of the protocol"
    UNENCODABLE = "the response cannot be put into a message"
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
UNENCODABLE_METADATA = Refusal(
    RefusalReason.UNENCODABLE,
    f"a rule's metadata nests deeper than {METADATA_DEPTH_MAX} levels: no message can hold it",
)
UNKNOWN_OVERRIDE_UNIT = Refusal(
    RefusalReason.INVALID,
    "the limit of a descriptor has no valid unit: give one of SECOND, MINUTE, HOUR, DAY, WEEK, "
    "MONTH, YEAR",
)


class Unmet(Enum):
    """A descriptor that hits no counter."""

    NO_RULE = "no rule with a limit, or a rule that another one replaces"
    UNLIMITED = "a rule without limit"


# Every new request makes these two, and frozen they would take four times as long to make. Nobody
# edits them.
@dataclass(slots=True, eq=False)
class PlannedHit:
    """A descriptor that meets a limit. `limit` and `near` in hits; `addend` is what to count."""

    key: bytes
    bucket: int
    unit: Unit
    limit: int
    near: int
    addend: int
    is_refund: bool
    is_shadow: bool
    is_quota: bool
    tally: RuleTally
    limit_wire: bytes
    metadata: Mapping[str, object] | None

    @property
    def partition(self) -> int:
        return self.bucket // UNIT_SLOTS

    @property
    def signed_addend(self) -> int:
        """The counter's gain: negative for hits that are given back."""
        return -self.addend if self.is_refund else self.addend


PlannedDescriptor = PlannedHit | Unmet


@dataclass(slots=True, eq=False)
class RequestPlan:
    """One step per descriptor, in order. `request` is kept only where the reply will quote it."""

    steps: tuple[PlannedDescriptor, ...]
    hits: tuple[PlannedHit, ...]
    passing_quotas: int
    unknown_domain: str
    unknown_domain_hits: int
    request: RateLimitRequest | None


def refused_outright(request: RateLimitRequest) -> Refusal | None:
    """The fault of a request whatever the rules say, in the reference's order (B12)."""
    if not request.domain:
        return EMPTY_DOMAIN
    if not request.descriptors:
        return NO_DESCRIPTORS
    return None
