"""Chooses the media type of a reply by the caller's Accept header (RFC 9110, 12.5.1)."""

from collections.abc import Sequence

RANGES_MAX = 20


def wanted_type(accept: str, offered: Sequence[str]) -> str:
    """The offered type that weighs most; the first one where nothing is said, or nothing fits."""
    ranges = [_weighted(part) for part in accept.lower().split(",")[:RANGES_MAX] if part.strip()]
    weights = {name: _weight_of(name, ranges) for name in offered}
    return max(offered, key=lambda name: weights[name])


def _weight_of(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """The weight of the most exact range that covers it; 0 when none does."""
    kind = media_type.partition("/")[0]
    for covering in (media_type, f"{kind}/*", "*/*"):
        for name, weight in ranges:
            if name == covering:
                return weight
    return 0.0


def _weighted(part: str) -> tuple[str, float]:
    name, *parameters = (each.strip() for each in part.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return name, float(parameter[2:])
            except ValueError:
                return name, 0.0
    return name, 1.0
