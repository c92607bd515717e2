"""Hints: the memory of a payment under way, which its client carries (part H, Step by step).

    a step was taken -> one hint or more, sealed for this payment, good for 15 minutes
    the next call    -> all hints so far; what they say is what was done

Whoever has no key can make none, change none, and use none for another payment: a hint is sealed
(AES-256-GCM) for the digest of the whole request but its hints: integration, amount, tokens, all.
So it is good for one payment alone, and that for one transaction. Nothing else keeps a payment that
is under way: any replica can take its next step.
"""

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import DecodeError, Struct
from msgspec.json import Decoder, Encoder

from tollgate.serve.payments.checkout.steps import HINTS_OF, STEPS, Step
from tollgate.serve.payments.secrets.master_secret import MasterSecret, SealBroken

LIVES_MS = 15 * 60_000
HINTS_MAX = 32
HINT_LENGTH_MAX = 1_024


class Facts(Struct, frozen=True, omit_defaults=True):
    """What was found out by a step. `server`: the 3-D Secure server's id; `word`: its verdict;
    `transaction`: the id of the one that was made. `at_ms`: when there will be an answer."""

    version: str = ""
    server: str = ""
    word: str = ""
    eci: str = ""
    cryptogram: str = ""
    transaction: str = ""
    at_ms: int = 0


class _Hint(Struct, frozen=True, array_like=True):
    step: Step
    place: int
    until_ms: int
    facts: Facts


_encode = Encoder().encode
_decode = Decoder(_Hint).decode


@dataclass(frozen=True, slots=True)
class HintProblem:
    """Hints that are refused, and why; to begin anew helps."""

    message: str


@dataclass(frozen=True, slots=True)
class StepsTaken:
    """The steps that were taken, in order, with what they found out."""

    found: Mapping[Step, Facts]

    @property
    def next_step(self) -> Step | None:
        """None: all are taken."""
        return None if len(self.found) == len(STEPS) else STEPS[len(self.found)]


class HintSealer:
    """Makes hints, and reads them."""

    def __init__(self, secret: MasterSecret) -> None:
        self._sealer = secret.sealer("payment hints")
        self._key = secret.key_for("ids of payments")

    def payment_id(self, request: str) -> str:
        """The id of the payment that a request is for: the same for the same text, and nobody else
        can tell which."""
        return hmac.digest(self._key, request.encode(), "sha256").hex()

    def issue(self, payment: str, now_ms: int, steps: Iterable[tuple[Step, Facts]]) -> list[str]:
        """The hints of steps that were taken for a payment."""
        until_ms = now_ms + LIVES_MS
        return [
            self._sealer.seal(_encode(_Hint(step, place, until_ms, facts)).decode(), payment)
            for step, facts in steps
            for place in range(HINTS_OF[step])
        ]

    def read(self, payment: str, now_ms: int, hints: Sequence[str]) -> StepsTaken | HintProblem:
        """The progress of a payment by its hints, in whatever order they are."""
        found: dict[tuple[Step, int], _Hint] = {}
        for text in hints:
            hint = self._open(text, payment)
            if hint is None or hint.until_ms <= now_ms:
                return HintProblem("a hint has expired, or belongs to another payment: begin anew")
            known = found.setdefault((hint.step, hint.place), hint)
            if known.facts != hint.facts:
                return HintProblem(f"the step {hint.step} was taken twice: begin anew")
        return _progress({place: hint.facts for place, hint in found.items()})

    def _open(self, text: str, payment: str) -> _Hint | None:
        if len(text) > HINT_LENGTH_MAX:
            return None
        try:
            return _decode(self._sealer.open(text, payment))
        except (SealBroken, DecodeError):
            return None


def _progress(found: Mapping[tuple[Step, int], Facts]) -> StepsTaken | HintProblem:
    taken: dict[Step, Facts] = {}
    for step in STEPS:
        facts = [found.get((step, place)) for place in range(HINTS_OF[step])]
        if None in facts:
            break
        assert facts[0] is not None, "none is missing"
        taken[step] = facts[0]
    if sum(HINTS_OF[step] for step in taken) != len(found):
        return HintProblem("hints are missing: send all that you were given")
    return StepsTaken(taken)
