"""What a page in a frame must know of its payment: sealed, and brought by the browser (part H).

challenge of a frame -> {action, method, fields: {state}} -> the page -> hints, to whoever opened
"""

from dataclasses import dataclass
from enum import StrEnum

from msgspec import DecodeError, Struct
from msgspec.json import Decoder, Encoder

from tollgate.serve.payments.checkout.hints import LIVES_MS
from tollgate.serve.payments.secrets.master_secret import SealBroken, Sealer

METHOD_TIMEOUT_MS = 5_000
BANK_WIDTH, BANK_HEIGHT = 390, 400
FRAMES = "/payments/frames"


class FrameKind(StrEnum):
    """The pages, by the last step of their paths."""

    METHOD = "browser"
    BANK = "bank"


class FrameState(Struct, frozen=True, omit_defaults=True):
    """`server`: the 3-D Secure server's id. `amount`, `text`: as the holder reads them.
    `is_silent`: the page never says that it is done."""

    kind: FrameKind
    payment: str
    server: str
    until_ms: int
    amount: str = ""
    text: str = ""
    is_silent: bool = False


_encode = Encoder().encode
_decode = Decoder(FrameState).decode


@dataclass(frozen=True, slots=True)
class FrameStates:
    """Seals states, and opens them."""

    sealer: Sealer

    def seal(self, state: FrameState) -> str:
        """The state as a field of a form."""
        return self.sealer.seal(_encode(state).decode(), state.kind)

    def open(self, kind: FrameKind, text: str, now_ms: int) -> FrameState | None:
        """The state of a page of this kind; None: it has expired, or is none of ours."""
        try:
            state = _decode(self.sealer.open(text, kind))
        except (SealBroken, DecodeError):
            return None
        return state if now_ms < state.until_ms else None


def state_until_ms(now_ms: int) -> int:
    """The end of a state that is made now."""
    return now_ms + LIVES_MS


def answer_name(server: str) -> str:
    """The name by which a holder's answer is known; it is given once."""
    return f"answer {server}"
