"""The calls of a front that wait for its partition, and the items that ask for them.

    a call waits -> Ask, behind the loans that were too small for it (Surrender)
      -> an Answer settles its requests; or its patience ends, and nobody asks for it any more

An item that is sent late, or once more, asks only for those who still wait, and says how long they
still will: what nobody waits for is not counted.
"""

from collections.abc import Mapping

from tollgate.actors.ratelimit.lending.messages import (
    Ask,
    CounterName,
    LimitedHit,
    PartitionItem,
)
from tollgate.actors.ratelimit.lending.pending_call import PendingCall
from tollgate.actors.ratelimit.lending.rates import SpendRates
from tollgate.actors.ratelimit.lending.reports import Reports, Stream
from tollgate.actors.ratelimit.lending.terms import Terms

LOST = "the counter partition was lost, or took this front for lost, while it was counting"
NO_ANSWER = "the counter partition did not answer in time"
TOO_MUCH_WAITS = "too much waits already for the counter partition's answer"


class Asks:
    """Of one front to one partition; at most `calls_max` calls wait."""

    def __init__(self, terms: Terms, stream: Stream, reports: Reports) -> None:
        self._terms = terms
        self._reports = reports
        self._calls: dict[int, PendingCall] = {}
        self._last = 0
        self._rates = SpendRates(terms)
        self._stream = stream

    def sizes(self) -> dict[str, tuple[int, int]]:
        """(how many, at most) of everything that is kept, by the name of the bound."""
        return {
            "rates_max": (len(self._rates), self._terms.rates_max),
            "calls_max": (len(self._calls), self._terms.calls_max),
        }

    def find(self, number: int) -> PendingCall | None:
        """A call that waits."""
        return self._calls.get(number)

    def ask(self, call: PendingCall, now_s: float, patience_s: float) -> None:
        """Ask for all that a call waits for; what was lent of it, and is not enough, goes along."""
        is_too_much = len(self._calls) >= self._terms.calls_max or self._stream.is_full
        if is_too_much or patience_s <= 0:
            call.fail(NO_ANSWER if patience_s <= 0 else TOO_MUCH_WAITS)
            return
        self._last += 1
        call.number = self._last
        call.until_s = now_s + patience_s
        self._calls[call.number] = call
        self.put(call, list(range(len(call.awaited))), now_s)

    def put(self, call: PendingCall, requests: list[int], now_s: float) -> None:
        """Put some requests of a call on their way."""
        awaited = [call.awaited[request].hits for request in requests]
        surrendered = self._reports.surrender(hit.counter for hits in awaited for hit in hits)
        if call.is_conditional:
            wanted = [0] * len(requests)
        else:
            wanted = [self._wanted(hits[0], surrendered, now_s) for hits in awaited]
        patience_s = call.until_s - now_s
        ask = Ask(call.number, requests, awaited, wanted, call.is_conditional, patience_s)
        self._stream.put(ask)

    def _wanted(self, hit: LimitedHit, spent: Mapping[CounterName, int], now_s: float) -> int:
        return self._rates.wanted(hit.key, spent.get(hit.counter, 0) + max(0, hit.addend), now_s)

    def as_of(self, item: PartitionItem, now_s: float) -> PartitionItem:
        """An item as it is sent now: an Ask has the patience that is left, and is empty when nobody
        waits for it any more."""
        if not isinstance(item, Ask):
            return item
        call = self._calls.get(item.call)
        if call is None:
            return Ask(item.call, [], [], [], item.is_conditional, 0.0)
        return item._replace(patience_s=call.until_s - now_s)

    # Who waits no longer

    def close(self, call: PendingCall) -> None:
        """A call is done."""
        del self._calls[call.number]

    def end(self, now_s: float) -> None:
        """Give up what nobody waits for."""
        for call in [each for each in self._calls.values() if each.until_s <= now_s]:
            call.fail(NO_ANSWER)
            self.close(call)

    def begin(self, stream: Stream, untaken: list[PartitionItem]) -> None:
        """A new lease: what the partition has certainly not taken of the one before is asked for
        again; who waits for anything else has lost."""
        self._stream = stream
        asks = [item for item in untaken if isinstance(item, Ask) and item.call in self._calls]
        open_calls = {ask.call for ask in asks}
        for call in [each for each in self._calls.values() if each.number not in open_calls]:
            call.fail(LOST)
            self.close(call)
        for ask in asks:
            stream.put(ask)
