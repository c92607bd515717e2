"""Which of the cases that Schemathesis makes of an API's document a run takes."""

from typing import Any

from schemathesis.generation.meta import CoveragePhaseData


class Edges:
    """The edges of values: of each operation dozens. Thorough runs take them all, others one of
    each kind (a text that is too long, a method that is not there), for every operation."""

    def __init__(self, *, is_thorough: bool) -> None:
        self._is_thorough = is_thorough
        self._taken: set[tuple[str, str, str]] = set()

    def takes(self, case: Any) -> bool:
        """Whether to make this call; of cases that were drawn, always."""
        edge = case.meta.phase.data
        if self._is_thorough or not isinstance(edge, CoveragePhaseData):
            return True
        kind = case.operation.method, case.operation.path, edge.scenario
        is_new = kind not in self._taken
        self._taken.add(kind)
        return is_new
