"""Decides when rule files are loaded (B20; part A, Reload); what then happens is in `in_force.py`.

    looks: nothing changed                 -> nothing
           changed since the last look     -> wait until two looks agree (half-written files)
           settled                         -> loaded
           settled, but not to be read     -> an error, and read again at every look: a disk that
                                              recovers changes no file; told once each

The first look loads at once.
"""

from collections.abc import Callable, Hashable, Sequence
from threading import Event
from typing import Protocol

from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError
from tollgate.actors.ratelimit.rules.rule_set import RuleSet
from tollgate.actors.ratelimit.watching.in_force import RuleArchive, RulesInForce


class RuleFileSource(Protocol):
    """A source of rule files. Both calls raise RuleFileError for what cannot be read."""

    def signature(self) -> Hashable: ...

    def read(self) -> list[RuleFile]: ...


class Watcher(RulesInForce):
    """The state of watching one source: `look` at intervals; it does not raise for files."""

    def __init__(
        self,
        run: str,
        source: RuleFileSource,
        archive: RuleArchive,
        load: Callable[[Sequence[RuleFile]], RuleSet],
    ) -> None:
        super().__init__(run, archive, load)
        self._source = source
        self._seen: Hashable = None
        self._settled: Hashable = None
        self._has_looked = False
        self._is_unread = False

    def wait(self, within_s: float) -> None:
        """Until the next look is due."""
        Event().wait(within_s)

    def look(self) -> bool:
        """Look once; True if there is something to tell: new rules, an error, the end of one."""
        try:
            signature: Hashable = self._source.signature()
        except RuleFileError as error:
            signature = str(error)
        is_first, self._has_looked = not self._has_looked, True
        is_stable, self._seen = signature == self._seen, signature
        is_done = signature == self._settled and not self._is_unread
        if not is_first and (not is_stable or is_done):
            return False
        self._settled = signature
        was_unread, self._is_unread = self._is_unread, False
        try:
            files = self._source.read()
        except RuleFileError as error:
            self._is_unread = True
            is_known = was_unread and str(error) == str(self.error)
            return not is_known and self.refuse(error)
        return self.put_in_force(files)
