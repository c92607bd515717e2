"""The operator's settings of the decision, as the engine takes them."""

from dataclasses import dataclass
from enum import Enum

PLAN_MEMO_ENTRIES_MAX = 65_536


class FailureMode(Enum):
    """The fate of a hit whose counter cannot be reached in time.

    ERROR ends the call with an error, as the reference does. ALLOW decides as though nothing had
    been counted yet, DENY as though the limit were used up.
    """

    ERROR = "error"
    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """The three response headers of B13."""

    limit: str = "RateLimit-Limit"
    remaining: str = "RateLimit-Remaining"
    reset: str = "RateLimit-Reset"


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings of the decision. `headers` None: no response headers. `has_outside_counters`:
    counters have the names that they have in stores outside (`counter_keys.py`)."""

    near_limit_ratio: float = 0.8
    is_shadow_mode: bool = False
    is_quota_mode: bool = False
    stops_when_over: bool = False
    has_calendar_months: bool = False
    has_dynamic_metadata: bool = False
    headers: HeaderNames | None = None
    failure_mode: FailureMode = FailureMode.ERROR
    counter_key_prefix: str = ""
    has_outside_counters: bool = False
    local_cache_bytes: int = 0
    plan_memo_entries_max: int = PLAN_MEMO_ENTRIES_MAX
