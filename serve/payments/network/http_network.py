"""A card network behind HTTP: the contract that a gateway implements (I5).

    POST <url>/v1/operations   carry a move out; the same id again is the same move
    POST <url>/v1/enquiries    what became of it; one that was never seen is refused from then on
    POST <url>/v1/reversals    set the amount of an authorisation free again

Whatever is not an answer of the contract is no answer: another status, a body that is too long or
says something else, silence, a cut connection. Then the outcome is unknown, and nothing is sent
again: the worker enquires. While the circuit is open, and when too many calls are under way,
nothing goes out, and a move that was not sent is refused, which is certain.
"""

import asyncio
import logging
import ssl
from dataclasses import dataclass

from msgspec import DecodeError, Struct
from msgspec.json import Decoder, encode

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.book.documents import moment
from tollgate.actors.ledger.law.values import (
    CardSummary,
    NetworkAction,
    NetworkApproved,
    NetworkDeclined,
)
from tollgate.serve.net.guarded_client import CallError, GuardedClient, TargetPolicy
from tollgate.serve.payments.api.orders import DEADLINE_S
from tollgate.serve.payments.network.card import PlainCard
from tollgate.serve.payments.network.card_network import (
    Authorisation,
    Charge,
    NetworkAnswer,
    NetworkOperation,
    PaymentRefused,
    Unknown,
)
from tollgate.serve.payments.network.circuit import Circuit
from tollgate.serve.payments.network.simulated_behaviour import CardBehaviour
from tollgate.serve.payments.reference.processing_errors import ProcessingErrors
from tollgate.serve.payments.webhooks.signature import SIGNATURE_HEADER, signature

LOG = logging.getLogger("tollgate.payments.network")
VERSION = 1
OPERATION_HEADER = "Tollgate-Operation"
ANSWER_BYTES_MAX = 16 * 1024
CALLS_MAX = 64
REFERENCE_LENGTH_MAX = 256
PLACE_WAIT_S = 2.0
# What a move may take beyond the deadline of its call before it is enquired about: the wait for a
# place, and the order that makes the answer durable. Were it enquired about earlier, an
# authorisation could be reversed that its caller is being told of.
MARGIN_MS = int(DEADLINE_S * 1000) + 5_000
BUSY = f"{CALLS_MAX} calls to the network are under way"
GENERIC = 12
NOT_SUPPORTED = 29
TDS = frozenset({"", "attempt", "full"})


class _Answer(Struct, rename="camel"):
    outcome: str
    reference: str = ""
    card_token: str = ""
    tds: str = ""
    code: int = 0


_decode = Decoder(_Answer).decode


@dataclass(frozen=True, slots=True)
class Gateway:
    """Where a network is. `secrets`: what calls are signed with, one or, while one is replaced,
    two. `tls`: with our certificate, if the gateway asks for one."""

    name: str
    url: str
    secrets: tuple[str, ...]
    timeout_ms: int
    allows_http: bool = False
    tls: ssl.SSLContext | None = None

    def __repr__(self) -> str:
        return f"Gateway({self.name})"


class HttpNetwork:
    """Belongs to one event loop. Nothing is decided without the gateway."""

    def __init__(self, gateway: Gateway, errors: ProcessingErrors, clock: Clock) -> None:
        self._gateway = gateway
        self._errors = errors
        self._clock = clock
        self._circuit = Circuit(clock)
        self._places = asyncio.Semaphore(CALLS_MAX)
        # The operator says where it is: inside their own network as well.
        policy = TargetPolicy(allows_http=gateway.allows_http, allows_private=True)
        self._client = GuardedClient(
            policy, gateway.timeout_ms / 1000, tls=gateway.tls, keeps_connections=True
        )

    @property
    def name(self) -> str:
        return self._gateway.name

    @property
    def enquired_after_ms(self) -> int:
        return self._gateway.timeout_ms + MARGIN_MS

    def is_immediate(self, action: NetworkAction, amount: int) -> bool:
        return False

    async def authorise(
        self, card: PlainCard, charge: Charge, test: CardBehaviour
    ) -> Authorisation | PaymentRefused:
        if test != CardBehaviour():
            return PaymentRefused("test", "is for test merchants: a card network is no simulator")
        scheme = card.brand
        if scheme is None:
            code = self._errors.error(NOT_SUPPORTED)
            return PaymentRefused("card.number", f"is of no scheme that is taken: {code.message}")
        return Authorisation(card.summary(scheme, ""), None)

    async def authorise_again(
        self, card: CardSummary, charge: Charge
    ) -> Authorisation | PaymentRefused:
        if not card.network_token:
            return PaymentRefused("", "the card network does not know this card by any token")
        return Authorisation(card, None)

    async def carry_out(
        self, operation: NetworkOperation, card: PlainCard | None = None
    ) -> NetworkAnswer:
        if not self._circuit.admits():
            return NetworkDeclined(self._errors.error(GENERIC))
        asked = _asked(operation)
        if card is not None:
            asked["card"] = card.disclosed()
        elif operation.card_token:
            asked["cardToken"] = operation.card_token
        answer = await self._call("operations", operation, asked)
        return NetworkDeclined(self._errors.error(GENERIC)) if answer is None else answer

    async def enquire(self, operation: NetworkOperation) -> NetworkAnswer:
        if not self._circuit.admits():
            return Unknown("the network is left alone, since it did not answer")
        return await self._call("enquiries", operation, _asked(operation)) or Unknown(BUSY)

    async def reverse(self, operation: NetworkOperation) -> NetworkAnswer:
        if not self._circuit.admits():
            return Unknown("the network is left alone, since it did not answer")
        return await self._call("reversals", operation, _asked(operation)) or Unknown(BUSY)

    async def close(self) -> None:
        """Ends all connections."""
        await self._client.close()

    async def _call(
        self, what: str, operation: NetworkOperation, asked: dict[str, object]
    ) -> NetworkAnswer | None:
        """The answer; None: there was no place, and nothing was sent."""
        try:
            async with asyncio.timeout(PLACE_WAIT_S):
                await self._places.acquire()
        except TimeoutError:
            LOG.warning("%s: nothing is sent about %s: %s", self.name, operation.id, BUSY)
            return None
        body = encode({"version": VERSION, "operation": asked})
        try:
            reply = await self._client.call(
                "POST",
                f"{self._gateway.url}/v{VERSION}/{what}",
                self._headers(body, operation),
                body,
                bytes_max=ANSWER_BYTES_MAX,
            )
        except CallError as error:
            return self._silent(operation, str(error))
        finally:
            self._places.release()
        if reply.status != 200:
            return self._silent(operation, f"HTTP status {reply.status}")
        answer = self._read(reply.body)
        if isinstance(answer, Unknown):
            return self._silent(operation, answer.why)
        self._circuit.answered()
        return answer

    def _silent(self, operation: NetworkOperation, why: str) -> Unknown:
        self._circuit.silent()
        LOG.warning("%s does not answer about %s: %s", self.name, operation.id, why)
        return Unknown(why)

    def _read(self, body: bytes) -> NetworkAnswer:
        try:
            told = _decode(body)
        except DecodeError:
            return Unknown("its answer is none of the contract")
        match told.outcome:
            case "approved" if _is_approval(told):
                return NetworkApproved(told.reference, told.card_token, told.tds)
            case "refused" if told.code in self._errors.by_code:
                return NetworkDeclined(self._errors.error(told.code))
            case "unknown":
                return Unknown("the network does not know it yet")
        return Unknown("its answer is none of the contract")

    def _headers(self, body: bytes, operation: NetworkOperation) -> dict[str, str]:
        at_s = int(self._clock.now_s())
        return {
            "Content-Type": "application/json",
            "Accept": "application/json",
            OPERATION_HEADER: operation.id,
            SIGNATURE_HEADER: signature(body, self._gateway.secrets, at_s),
        }


def _is_approval(told: _Answer) -> bool:
    texts = (told.reference, told.card_token)
    is_short = all(len(text) <= REFERENCE_LENGTH_MAX and text.isascii() for text in texts)
    return bool(told.reference) and is_short and told.tds in TDS


def _asked(operation: NetworkOperation) -> dict[str, object]:
    return {
        "id": operation.id,
        "action": operation.action.value,
        "merchant": operation.book,
        "amount": {
            "currency": operation.currency,
            "exponent": operation.exponent,
            "value": operation.amount,
        },
        "follows": operation.follows,
        "descriptor": operation.descriptor,
        "created": moment(operation.at_ms),
    }
