"""Owns the rules in force: a whole set replaces them, or nothing does; good ones are put away.

    a good set, different     -> a new generation replaces the old one as a whole
    a good set, the same      -> nothing, but the end of an error is told
    a set that is refused     -> the error is told; the old rules stay

Generations only grow. A watcher that starts again goes on from the last good rules that it put
away under the same `run`: whatever its source holds by then cannot take them back.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError
from tollgate.actors.ratelimit.rules.rule_set import RuleSet

LOAD_SUCCESS = "ratelimit.service.config_load_success"
LOAD_ERROR = "ratelimit.service.config_load_error"


@dataclass(frozen=True, slots=True)
class Generation:
    """A rule set that was put in force. Numbers grow by one within a run."""

    number: int
    rules: RuleSet


@dataclass(frozen=True, slots=True)
class GoodRules:
    """The files of the last good load, as they are put away for a restart in the same `run`.

    `version`: as their source calls them, if it has a name for versions.
    """

    run: str
    number: int
    files: tuple[RuleFile, ...]
    version: str = ""


class RuleArchive(Protocol):
    """Keeps the last good rules over a restart of the watcher."""

    def put_away(self, good: GoodRules) -> None:
        """OSError when the disk refuses."""

    def take_out(self) -> GoodRules | None: ...


class RulesInForce:
    """The rules in force and how they came to be. `run` names those whose rules may be gone on
    with: one deployment, or one source."""

    def __init__(
        self, run: str, archive: RuleArchive, load: Callable[[Sequence[RuleFile]], RuleSet]
    ) -> None:
        self._run = run
        self._archive = archive
        self._load = load
        self.generation: Generation | None = None
        self.version = ""
        """The source's name for the rules in force; empty where it has none."""
        self.error: RuleFileError | None = None
        self.archive_error: OSError | None = None
        """The error that kept the rules in force from being put away for a restart."""
        self.loads = 0
        self.failed_loads = 0
        self._recover()

    def totals(self) -> Mapping[str, int]:
        """Everything that was counted since the start, by the names of statistics."""
        return {LOAD_SUCCESS: self.loads, LOAD_ERROR: self.failed_loads}

    def gauges(self) -> Mapping[str, float]:
        """The values of this moment, by the names of statistics."""
        return {}

    def described(self) -> Mapping[str, object]:
        """The source, for operators: plain values by name. `away`: why it cannot be heard."""
        return {"source": "files", "version": self.version, "away": ""}

    def put_in_force(self, files: Sequence[RuleFile], version: str = "") -> bool:
        """Loads a whole set; True when there is something to tell: new rules, an error, the end of
        one. `error` says whether it was refused."""
        try:
            rules = self._load(files)
        except RuleFileError as error:
            return self.refuse(error)
        had_error, self.error = self.error is not None, None
        generation = self.generation
        is_new = generation is None or generation.rules.digest != rules.digest
        if is_new:
            number = 1 if generation is None else generation.number + 1
            self.generation = generation = Generation(number, rules)
            self.loads += 1
        if is_new or version != self.version:
            assert generation is not None
            self.version = version
            self._put_away(GoodRules(self._run, generation.number, tuple(files), version))
        return is_new or had_error

    def refuse(self, error: RuleFileError) -> bool:
        """Notes a load that failed; True, for there is an error to tell."""
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
        try:
            rules = self._load(good.files)
        except RuleFileError:
            # Put away under other settings, or by another version of Tollgate.
            return
        self.generation, self.version = Generation(good.number, rules), good.version
