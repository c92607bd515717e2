"""The parts of the customer's way to pay, put together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.serve.payments.checkout.frames.state import FrameStates
from tollgate.serve.payments.checkout.hints import HintSealer
from tollgate.serve.payments.checkout.simulated_bank import SimulatedBank
from tollgate.serve.payments.checkout.three_d_secure import NoBank, ThreeDSecure
from tollgate.serve.payments.checkout.vault import Vault
from tollgate.serve.payments.secrets.master_secret import MasterSecret
from tollgate.serve.payments.secrets.vault_keys import VaultKeys


class SingleUses(Protocol):
    """Names that may be used once, and what for; all replicas share them."""

    async def use(self, names: Mapping[str, int], use: str) -> bool:
        """Gives names, all or none, this use, until a time in ms. False: one has another."""

    async def find(self, name: str) -> str | None:
        """The use of a name; None: it has none yet."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """`test_bank`, `live_bank`: 3-D Secure of test merchants, and of live ones. `frames`: what
    pages in frames must know."""

    vault: Vault
    hints: HintSealer
    uses: SingleUses
    frames: FrameStates
    test_bank: ThreeDSecure
    live_bank: ThreeDSecure

    def bank(self, *, is_test: bool) -> ThreeDSecure:
        """3-D Secure of a merchant."""
        return self.test_bank if is_test else self.live_bank


def checkout_parts(
    secret: MasterSecret, keys: VaultKeys, uses: SingleUses, clock: Clock
) -> Checkout:
    """All of it, with a bank that is played for test merchants, and none for live ones."""
    return Checkout(
        vault=Vault(keys, clock),
        hints=HintSealer(secret),
        uses=uses,
        frames=FrameStates(secret.sealer("payment frames")),
        test_bank=SimulatedBank(),
        live_bank=NoBank(),
    )
