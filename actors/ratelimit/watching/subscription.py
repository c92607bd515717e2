"""Takes whole sets of rules from a control plane, and says what becomes of each (B20, xDS).

    a stream opens       asks with the version that was acknowledged last by this process, and
                         without a nonce, for nonces are a stream's own
    a set is offered     waits for the next look, which loads it
        good             in force, then ACK: its version, its nonce
        wrong (B1)       the old rules stay; NACK: the last version acknowledged, its nonce, why
        not decodable    the same, and it counts as no load
    a stream ends        the rules stay; the control plane is away until it has answered again, or
                         has held a stream for SETTLED_S, for one with nothing new says nothing.
                         That is told when the next stream fails, too: some end theirs by the hour

A stream has a thread, which waits in `offered` for the verdict: so one set at a time is held, ACK
means in force, and a control plane that is silent holds up nobody else. A process that starts anew
asks without a version and gets everything, whatever it has put away.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from threading import Condition, Thread

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError, located_text
from tollgate.actors.ratelimit.rules.rule_set import RuleSet
from tollgate.actors.ratelimit.watching.in_force import RuleArchive, RulesInForce

LOG = logging.getLogger("tollgate.rules")
AWAY = "ratelimit.control_plane.away_seconds"
ACKNOWLEDGED = "ratelimit.control_plane.acknowledged"
REFUSED = "ratelimit.control_plane.refused"
STREAMS_ENDED = "ratelimit.control_plane.streams_ended"
SETTLED_S = 10.0


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A message to the control plane. `error`: why the offer with this nonce is refused; without
    one, and with a nonce, the offer is acknowledged."""

    version: str
    nonce: str = ""
    error: str = ""


class Absence(Enum):
    """The kinds of reasons why there is no control plane; the values are for operators."""

    NOT_YET = "has not answered yet"
    CONNECTION = "cannot be reached"
    TLS = "and we do not agree on TLS"
    STREAM = "has ended the stream"


@dataclass(frozen=True, slots=True)
class _Offer:
    version: str
    nonce: str
    resources: Sequence[RuleFile] | RuleFileError


@dataclass(frozen=True, slots=True)
class _Link:
    """The way to the control plane. `is_open`: a stream is; `has_answered`: something came in it;
    `is_renewal`: a good stream ended, and the next one has not been tried yet."""

    since_s: float
    is_open: bool = False
    has_answered: bool = False
    is_renewal: bool = False
    absence: Absence = Absence.NOT_YET
    reason: str = ""

    def is_good(self, now_s: float) -> bool:
        """True once the control plane does what it is there for."""
        return self.is_open and (self.has_answered or now_s - self.since_s >= SETTLED_S)


class Subscription(RulesInForce):
    """The rules of one control plane, which `target` names. `look`, `wait`, `described` and what
    they tell are for the actor, all else for the thread that has the stream."""

    def __init__(
        self,
        target: str,
        node: str,
        archive: RuleArchive,
        load: Callable[[Sequence[RuleFile]], RuleSet],
        clock: Clock,
    ) -> None:
        super().__init__(f"control plane {target}, node {node}", archive, load)
        self._target = target
        self._clock = clock
        self._acknowledged = ""
        self._offer: _Offer | None = None
        self._verdict: Subscribe | None = None
        self._moved = Condition()
        self._thread: Thread | None = None
        self._link = _Link(clock.monotonic_s())
        self._away_since_s: float | None = self._link.since_s
        self._told: Absence | None = Absence.NOT_YET
        self._acknowledgements = 0
        self._refusals = 0
        self._ended_streams = 0

    # Of the thread that has the stream.

    def served_by(self, thread: Thread | None) -> None:
        """Notes the thread that has the stream; None: it is done."""
        self._thread = thread

    def first_message(self) -> Subscribe:
        """The message that opens a stream."""
        return Subscribe(self._acknowledged)

    def opened(self) -> None:
        """Notes that the control plane is connected."""
        self._link = _Link(self._clock.monotonic_s(), is_open=True)

    def offered(
        self, version: str, nonce: str, resources: Sequence[RuleFile] | RuleFileError
    ) -> Subscribe:
        """The answer to a set of rules, or to one that cannot be decoded; waits for a look."""
        offer = _Offer(version, nonce, resources)
        with self._moved:
            assert self._offer is None, "a stream has one thread, and there is one stream"
            self._link = _Link(self._clock.monotonic_s(), is_open=True, has_answered=True)
            self._offer, self._verdict = offer, None
            self._moved.notify_all()
            self._moved.wait_for(lambda: self._verdict is not None)
            assert self._verdict is not None
            return self._verdict

    def lost(self, absence: Absence, reason: str) -> None:
        """Notes that there is no stream any more, or that none could be opened."""
        now_s = self._clock.monotonic_s()
        self._ended_streams += self._link.is_open
        was_good = self._link.is_good(now_s)
        self._link = _Link(now_s, is_renewal=was_good, absence=absence, reason=reason)

    # Of the actor.

    def wait(self, within_s: float) -> None:
        """Until a set is offered, for this long at most."""
        with self._moved:
            self._moved.wait_for(lambda: self._offer is not None, within_s)

    def look(self) -> bool:
        """Loads what is offered; True if there is something to tell of the rules. Raises when the
        thread that has the stream has ended by an error: without it this is of no use."""
        thread = self._thread
        if thread is not None and not thread.is_alive():
            raise RuntimeError("nobody listens to the control plane any more")
        self._look_at_link()
        with self._moved:
            offer = self._offer
        if offer is None:
            return False
        has_news, verdict = self._judged(offer)
        with self._moved:
            self._offer, self._verdict = None, verdict
            self._moved.notify_all()
        return has_news

    def totals(self) -> Mapping[str, int]:
        return {
            **super().totals(),
            ACKNOWLEDGED: self._acknowledgements,
            REFUSED: self._refusals,
            STREAMS_ENDED: self._ended_streams,
        }

    def gauges(self) -> Mapping[str, float]:
        return {AWAY: round(self._away_s(), 3)}

    def described(self) -> Mapping[str, object]:
        away = "" if self._told is None else self._absence()
        source = f"control plane {self._target}"
        return {**super().described(), "source": source, "away": away}

    def _judged(self, offer: _Offer) -> tuple[bool, Subscribe]:
        if isinstance(offer.resources, RuleFileError):
            self.error = offer.resources
            has_news = True
        else:
            has_news = self.put_in_force(offer.resources, offer.version)
        if self.error is not None:
            self._refusals += 1
            return has_news, Subscribe(self._acknowledged, offer.nonce, _text(self.error))
        self._acknowledgements += 1
        self._acknowledged = offer.version
        return has_news, Subscribe(offer.version, offer.nonce)

    def _look_at_link(self) -> None:
        """Says once that the control plane is away, and for which kind of reason, and once that it
        is back."""
        link, now_s = self._link, self._clock.monotonic_s()
        if link.is_good(now_s):
            if self._told is not None:
                LOG.warning("the control plane %s answers", self._target)
            self._away_since_s = self._told = None
        elif not link.is_open:
            if self._away_since_s is None:
                self._away_since_s = link.since_s
            if not link.is_renewal and link.absence is not self._told:
                self._told = link.absence
                LOG.error("the rules in force stay: %s", self._absence())

    def _absence(self) -> str:
        link = self._link
        text = f"the control plane {link.absence.value}"
        return located_text(self._target, None, f"{text}: {link.reason}" if link.reason else text)

    def _away_s(self) -> float:
        since_s = self._away_since_s
        return 0.0 if since_s is None else self._clock.monotonic_s() - since_s


def _text(error: RuleFileError) -> str:
    """The error as the reference writes it, within bounds: it may quote what was sent."""
    return located_text(error.file, None, error.reason)
