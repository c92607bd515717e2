"""Decides when rules are loaded and which are in force (B20; part A, Reload).

    looks: nothing changed                 -> nothing
           changed since the last look     -> wait until two looks agree (half-written files)
           settled, content as in force    -> nothing
           settled, valid                  -> a new generation replaces the old one as a whole
           settled, broken                 -> the error is counted and logged; the old rules stay
           settled, but not to be read     -> the same, and read again at every look: a disk that
                                              recovers changes no file; logged once each

The first look loads at once. Generations only grow; a watcher that is restarted in the same run
goes on from the last good rules that it put away: broken files on disk cannot take them back.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError
from tollgate.actors.ratelimit.rules.rule_set import RuleSet


@dataclass(frozen=True, slots=True)
class Generation:
    """A rule set that was put in force. Numbers grow by one within a run."""

    number: int
    rules: RuleSet


@dataclass(frozen=True, slots=True)
class GoodRules:
    """The files of the last good load, as they are put away for a restart in the same `run`."""

    run: str
    number: int
    files: tuple[RuleFile, ...]


class RuleFileSource(Protocol):
    """A source of rule files. Both calls raise RuleFileError for what cannot be read."""

    def signature(self) -> Hashable: ...

    def read(self) -> list[RuleFile]: ...


class RuleArchive(Protocol):
    """Keeps the last good rules over a restart of the watcher."""

    def put_away(self, good: GoodRules) -> None:
        """OSError when the disk refuses."""

    def take_out(self) -> GoodRules | None: ...


class Watcher:
    """The state of watching one source: `look` at intervals; it does not raise for files."""

    def __init__(
        self,
        run: str,
        source: RuleFileSource,
        archive: RuleArchive,
        load: Callable[[Sequence[RuleFile]], RuleSet],
    ) -> None:
        self._run = run
        self._source = source
        self._archive = archive
        self._load = load
        self._seen: Hashable = None
        self._settled: Hashable = None
        self._has_looked = False
        self._is_unread = False
        self.generation: Generation | None = None
        self.error: RuleFileError | None = None
        self.archive_error: OSError | None = None
        """The error that kept the rules in force from being put away for a restart."""
        self.loads = 0
        self.failed_loads = 0
        self._recover()

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
        return self._try_load()

    def _try_load(self) -> bool:
        was_unread, self._is_unread = self._is_unread, False
        try:
            files = self._source.read()
        except RuleFileError as error:
            self._is_unread = True
            is_known = was_unread and str(error) == str(self.error)
            return not is_known and self._failed(error)
        try:
            rules = self._load(files)
        except RuleFileError as error:
            return self._failed(error)
        had_error, self.error = self.error is not None, None
        if self.generation is not None and self.generation.rules.digest == rules.digest:
            return had_error
        number = 1 if self.generation is None else self.generation.number + 1
        self.generation = Generation(number, rules)
        self.loads += 1
        self._put_away(GoodRules(self._run, number, tuple(files)))
        return True

    def _failed(self, error: RuleFileError) -> bool:
        self.error = error
        self.failed_loads += 1
        return True

    def _put_away(self, good: GoodRules) -> None:
        """The rules are in force with or without a copy: a full disk must not hold them up."""
        try:
            self._archive.put_away(good)
        except OSError as error:
            self.archive_error = error
        else:
            self.archive_error = None

    def _recover(self) -> None:
        good = self._archive.take_out()
        if good is None or good.run != self._run:
            return
        self.generation = Generation(good.number, self._load(good.files))
