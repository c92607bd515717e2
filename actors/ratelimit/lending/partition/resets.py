"""The counters that were set to 0, and since when nothing of before counts.

A reset outlives the process that has done it, for somebody may be left who knows more hits than
there are by now: a front that has not heard of it, or a journal or copy that was written before.
So the slot's epoch rises with it. Fronts are told the new one, and so are journals and copies; and
who starts again believes of a counter only what was counted in that epoch or later.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from tollgate.actors.ratelimit.lending.messages import CounterColumns, CounterName


@dataclass(frozen=True, slots=True)
class Reset:
    """`epoch`: of the slot since then. `at_s`: by the monotonic clock of the process that did it;
    -inf in another one. `number`: in the order in which this process learnt of resets."""

    epoch: int
    at_s: float
    number: int


class Resets:
    """The last one of each counter, at most `resets_max`: beyond them those go first whose windows
    end first."""

    def __init__(self, resets_max: int) -> None:
        self._resets_max = resets_max
        self._windows: dict[int, OrderedDict[bytes, Reset]] = defaultdict(OrderedDict)
        self._size = 0
        self.number = 0
        """Of the last one that was noted."""

    def __len__(self) -> int:
        return self._size

    def note(self, counter: CounterName, epoch: int, at_s: float = -inf) -> None:
        """A counter was set to 0. Of two resets the one of the higher epoch is the later."""
        if epoch <= self.epoch(counter):
            return
        end_s, key = counter
        window = self._windows[end_s]
        self._size += key not in window
        self.number += 1
        window[key] = Reset(epoch, at_s, self.number)
        window.move_to_end(key)
        if self._size > self._resets_max:
            first_s = min(self._windows)
            self._windows[first_s].popitem(last=False)
            self._size -= 1
            if not self._windows[first_s]:
                del self._windows[first_s]

    def note_all(self, resets: Iterable[CounterColumns]) -> None:
        """Resets that another process has done: epochs in the place of counts."""
        for end_s, keys, epochs in resets:
            for key, epoch in zip(keys, epochs, strict=True):
                self.note((end_s, key), epoch)

    def epoch(self, counter: CounterName) -> int:
        """The epoch of the slot since the last reset of a counter; 0: there was none."""
        reset = self._find(counter)
        return 0 if reset is None else reset.epoch

    def is_void(self, counter: CounterName, since_s: float) -> bool:
        """Whether a counter was set to 0 then or later."""
        reset = self._find(counter)
        return reset is not None and reset.at_s >= since_s

    def between(self, after: int, until: int) -> list[CounterColumns]:
        """Those of these numbers, with epochs in the place of counts."""
        found = []
        for end_s, window in self._windows.items():
            columns: CounterColumns = (end_s, [], [])
            for key, reset in reversed(window.items()):
                if reset.number <= after:
                    break
                if reset.number <= until:
                    columns[1].append(key)
                    columns[2].append(reset.epoch)
            if columns[1]:
                found.append(columns)
        return found

    def end_window(self, end_s: int) -> None:
        self._size -= len(self._windows.pop(end_s, ()))

    def _find(self, counter: CounterName) -> Reset | None:
        window = self._windows.get(counter[0])
        return None if window is None else window.get(counter[1])
