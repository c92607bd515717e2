"""The question of a caller: a domain and a list of descriptors (B15).

Strings are compared as they are: descriptors are case-sensitive and nothing is trimmed.
"""

from dataclasses import dataclass

from tollgate.actors.ratelimit.counting.windows import Unit

DESCRIPTORS_PER_REQUEST_MAX = 256
ENTRIES_PER_DESCRIPTOR_MAX = 64
ENTRY_BYTES_MAX = 4 * 1024
REQUEST_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """The bounds of a request (part A, Bounds). Beyond a bound: an error that names it."""

    descriptors_max: int = DESCRIPTORS_PER_REQUEST_MAX
    entries_max: int = ENTRIES_PER_DESCRIPTOR_MAX
    entry_bytes_max: int = ENTRY_BYTES_MAX
    request_bytes_max: int = REQUEST_BYTES_MAX


DEFAULT_BOUNDS = RequestBounds()

Entries = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Override:
    """A limit that the caller brings along (B4). `unit` None: absent or unknown, to be refused."""

    requests_per_unit: int
    unit: Unit | None


# Every new request makes one, and frozen it would take four times as long to make. Nobody edits it.
@dataclass(slots=True, unsafe_hash=True)
class RateLimitDescriptor:
    """An ordered list of (key, value) entries with what the caller says about its hits.

    `hits_addend` None: the request's addend counts; 0: check only. `is_negative_hits`: give back.
    """

    entries: Entries
    override: Override | None = None
    hits_addend: int | None = None
    is_negative_hits: bool = False


# Not frozen for the same reason.
@dataclass(slots=True, unsafe_hash=True)
class RateLimitRequest:
    """One rate-limit question. `hits_addend` 0 counts as 1 (B5)."""

    domain: str
    descriptors: tuple[RateLimitDescriptor, ...]
    hits_addend: int = 0
