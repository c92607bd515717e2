"""3-D Secure with a bank that is only played, for test merchants, as the `test` object says.

    tds.status unavailable       the card takes no part; asked for a challenge, the network wants it
    tds.fingerprint unavailable  the bank has no page to recognise the browser with
    tds.challenge                true, or left out with `tds`: the bank asks; false: it does not
    plan, unplanned              it asks whatever `challenge` says: who is charged again must agree

The holder's answer counts, and `tds.status` after it: rejected is rejected whatever was answered.
"""

import secrets
from dataclasses import dataclass

from tollgate.serve.payments.checkout.three_d_secure import (
    BrowserMethod,
    Enrolment,
    HolderAnswer,
    HolderAsked,
    Purchase,
)
from tollgate.serve.payments.network.card import PlainCard
from tollgate.serve.payments.network.simulated_behaviour import TdsFingerprint, TdsStatus
from tollgate.serve.payments.network.tds_result import TdsResult, TdsVerdict

VERSION = "2.2.0"
_CRYPTOGRAM_BYTES = 20
_VERDICT = {
    TdsStatus.AUTHENTICATED: TdsVerdict.AUTHENTICATED,
    TdsStatus.ATTEMPTED: TdsVerdict.ATTEMPTED,
    TdsStatus.REJECTED: TdsVerdict.REJECTED,
    TdsStatus.UNAVAILABLE: TdsVerdict.UNAVAILABLE,
}
# Visa's: authenticated, attempted, neither.
_ECI = {
    TdsVerdict.AUTHENTICATED: "05",
    TdsVerdict.ATTEMPTED: "06",
    TdsVerdict.REJECTED: "07",
    TdsVerdict.UNAVAILABLE: "07",
}
_HAS_CRYPTOGRAM = frozenset({TdsVerdict.AUTHENTICATED, TdsVerdict.ATTEMPTED})


@dataclass(frozen=True, slots=True)
class SimulatedBank:
    """The bank of every test card; it keeps nothing."""

    async def enrol(self, card: PlainCard, purchase: Purchase) -> Enrolment | TdsResult:
        del card
        server, tds = secrets.token_hex(16), purchase.test.tds
        if tds is not None and tds.status is TdsStatus.UNAVAILABLE:
            return _verdict(TdsVerdict.UNAVAILABLE, server)
        has_method = tds is None or tds.fingerprint is not TdsFingerprint.UNAVAILABLE
        return Enrolment(VERSION, server, has_method)

    async def begin(
        self, enrolment: Enrolment, method: BrowserMethod, purchase: Purchase
    ) -> HolderAsked | TdsResult:
        del method
        tds = purchase.test.tds
        if tds is None or tds.has_challenge or purchase.is_recurring:
            return HolderAsked()
        return _verdict(_VERDICT[tds.status], enrolment.server_transaction)

    async def finish(
        self, enrolment: Enrolment, answer: HolderAnswer, purchase: Purchase
    ) -> TdsResult:
        tds = purchase.test.tds
        status = TdsStatus.AUTHENTICATED if tds is None else tds.status
        verdict = _VERDICT[status] if answer is HolderAnswer.CONFIRMED else TdsVerdict.REJECTED
        return _verdict(verdict, enrolment.server_transaction)


def _verdict(verdict: TdsVerdict, server: str) -> TdsResult:
    cryptogram = secrets.token_hex(_CRYPTOGRAM_BYTES) if verdict in _HAS_CRYPTOGRAM else ""
    return TdsResult(verdict, VERSION, server, _ECI[verdict], cryptogram)
