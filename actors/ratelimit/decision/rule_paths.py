"""The ways through the rules, each remembered once it was gone: one step per entry (B2).

Rules are met by keys, and by values only where rules name values or patterns. So requests of one
shape, the same keys with ever new values, go the same few ways, and all that the rules say stands
at the end of a way as a template: what is left to do for a request is to fill in its values.

        root --(key, met by its value or pattern)--> path --(key, any value)--> path, template

Ways are kept by text of the rules alone, so requests cannot make them many: a key that only a
pattern's `*` reaches into is looked up anew each time.
"""

from collections.abc import Callable

from tollgate.actors.ratelimit.decision.hit_templates import HitTemplate
from tollgate.actors.ratelimit.rules.rule_match import Choice, MetRule, choose
from tollgate.actors.ratelimit.rules.rule_set import Level

PATHS_MAX = 65_536  # that one domain's rules keep; beyond it ways are looked up anew

WriteTemplate = Callable[[str, tuple[MetRule, ...]], HitTemplate | None]


class DomainPaths:
    """The ways through one domain's rules. Threads may share it: at worst two write the same."""

    __slots__ = ("_write_template", "domain", "kept", "root")

    def __init__(self, domain: str, level: Level, write_template: WriteTemplate) -> None:
        self.domain = domain
        self.kept = 0
        self._write_template = write_template
        self.root = RulePath(self, level, (), None)

    def path(self, steps: tuple[MetRule, ...]) -> "RulePath":
        """The path of these steps, made anew."""
        return RulePath(
            self, steps[-1].rule.children, steps, self._write_template(self.domain, steps)
        )


class RulePath:
    """The rules that the entries of a descriptor met so far.

    `template`: that of its hits, if the descriptor ends here; None when there is no limit then.
    """

    __slots__ = ("_by_key", "_by_value", "_level", "_paths", "_steps", "template")

    def __init__(
        self,
        paths: DomainPaths,
        level: Level,
        steps: tuple[MetRule, ...],
        template: HitTemplate | None,
    ) -> None:
        self._paths = paths
        self._level = level
        self._steps = steps
        self.template = template
        self._by_key: dict[str, RulePath] = {}
        # By the key, and the rule's id or the pattern's position: a text is cut into key and value
        # in more ways than one, and names show how.
        self._by_value: dict[tuple[str, str | int], RulePath] = {}

    def after(self, key: str, value: str) -> "RulePath | None":
        """The path that the next entry leads to; None when it meets no rule."""
        level = self._level
        full = f"{key}_{value}"
        if full in level.exact:
            path = self._by_value.get((key, full))
        elif level.wildcards and (position := level.patterns.first_match(full)) is not None:
            path = self._by_value.get((key, position))
        else:
            path = self._by_key.get(key)
        return path or self._looked_up(key, value)

    def _looked_up(self, key: str, value: str) -> "RulePath | None":
        step = choose(self._level, key, value)
        if step is None:
            return None
        if step.choice is not Choice.EXACT:
            step = MetRule(key, "", step.rule, step.choice)
        path = self._paths.path((*self._steps, step))
        if self._paths.kept < PATHS_MAX:
            self._keep(path, step)
        return path

    def _keep(self, path: "RulePath", step: MetRule) -> None:
        key, rule = step.key, step.rule
        if step.choice is Choice.DEFAULT:
            self._by_key[key] = path
        elif step.choice is Choice.EXACT:
            self._by_value[key, rule.id] = path
        elif rule.id.partition("*")[0].startswith(f"{key}_"):
            self._by_value[key, self._level.wildcards.index(rule)] = path
        else:
            return
        self._paths.kept += 1
