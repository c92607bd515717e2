"""The result of 3-D Secure, as a card network is told of it with a charge (part H, 3-D Secure)."""

from dataclasses import dataclass
from enum import Enum


class TdsVerdict(Enum):
    """The holder's bank on who pays. `UNAVAILABLE`: it said nothing."""

    AUTHENTICATED = "authenticated"
    ATTEMPTED = "attempted"
    REJECTED = "rejected"
    UNAVAILABLE = "unavailable"


# What is kept on the transaction (part H).
TDS_OF = {
    TdsVerdict.AUTHENTICATED: "full",
    TdsVerdict.ATTEMPTED: "attempt",
    TdsVerdict.REJECTED: "",
    TdsVerdict.UNAVAILABLE: "",
}


@dataclass(frozen=True, slots=True)
class TdsResult:
    """`version` of the protocol; `server_transaction`: the 3-D Secure server's id of it; `eci`: the
    electronic commerce indicator; `cryptogram`: the proof for the card network, or empty."""

    verdict: TdsVerdict
    version: str
    server_transaction: str
    eci: str
    cryptogram: str

    def __repr__(self) -> str:
        return f"TdsResult({self.verdict.value}, …)"
