"""The signature of a call to a webhook: how it is made, and how receivers check it.

    Tollgate-Signature: t=<seconds>,v1=<hex>[,v1=<hex>]     HMAC-SHA-256 of "<seconds>.<body>"

The body is the event's document, with its id for whoever has seen it before. Receivers refuse a `t`
more than five minutes off. While a secret is being replaced there is a `v1` of each. The secrets
are kept by `secrets.py`, and calls are made by `caller.py`.
"""

import hmac
from collections.abc import Sequence

TOLERANCE_S = 300
SIGNATURE_LENGTH_MAX = 1_024
SIGNATURE_HEADER = "Tollgate-Signature"


def signature(body: bytes, signing: Sequence[str], at_s: int) -> str:
    """The value of the header."""
    parts = [f"t={at_s}", *(f"v1={_mac(body, secret, at_s)}" for secret in signing)]
    return ",".join(parts)


def is_signed(header: str, body: bytes, secret: str, now_s: int) -> bool:
    """True if a call is from a holder of the secret, and not an old one sent again: what
    receivers do, in the words of this house."""
    if len(header) > SIGNATURE_LENGTH_MAX:
        return False
    parts = [part.partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name.strip() == "t"]
    if len(times) != 1 or not times[0].isdecimal() or abs(now_s - int(times[0])) > TOLERANCE_S:
        return False
    expected = _mac(body, secret, int(times[0])).encode()
    given = [value.encode() for name, _, value in parts if name.strip() == "v1"]
    matches = [hmac.compare_digest(expected, each) for each in given]
    return any(matches)


def _mac(body: bytes, secret: str, at_s: int) -> str:
    return hmac.new(secret.encode(), b"%d.%b" % (at_s, body), "sha256").hexdigest()
