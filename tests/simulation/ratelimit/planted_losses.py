"""Bugs planted into what becomes of counters when partitions start again or reset one.

Each replaces a piece of the real code for the time of a test.
"""

from math import inf

import pytest

from tests.simulation.ratelimit.planted_bugs import Plant
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.messages import CounterName
from tollgate.actors.ratelimit.lending.partition import lent_counters
from tollgate.actors.ratelimit.lending.partition.lent_counters import LentCounters
from tollgate.actors.ratelimit.lending.partition.recovery import Recovery
from tollgate.actors.ratelimit.lending.partition.slot_table import ChangeReader, SlotTable


def restart_that_forgets(patch: pytest.MonkeyPatch) -> None:
    """A partition that starts again asks only for loans."""
    patch.setattr(Recovery, "parts", lambda _: iter(()))


def restart_that_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    """A partition that starts again counts what nobody has told of yet."""
    patch.setattr(Recovery, "is_over", lambda *_: True)


def claim_granted_in_recovery(patch: pytest.MonkeyPatch) -> None:
    """A partition that has started again lends what nobody has told of yet."""
    settle = Lender._settle

    def settle_at_once(self: Lender, now_s: float) -> None:
        recovery, self._recovery = self._recovery, None
        settle(self, now_s)
        self._recovery = recovery

    patch.setattr(Lender, "_settle", settle_at_once)


def snapshot_not_read(patch: pytest.MonkeyPatch) -> None:
    """A partition that starts again believes nobody but fronts."""
    patch.setattr(Lender, "restore", lambda *_: None)


def snapshot_added_to_what_is_told(patch: pytest.MonkeyPatch) -> None:
    """What was restored and what fronts tell is counted, both."""

    def add(self: LentCounters, counter: CounterName, count: int) -> None:
        end_s, key = counter
        self.table.add(lent_counters.slot_of(key), end_s, key, count)

    patch.setattr(LentCounters, "raise_to", add)


def changes_not_kept(patch: pytest.MonkeyPatch) -> None:
    """What has changed is handed out but for the last of it."""
    take_changes = SlotTable.take_changes

    def take_most(
        self: SlotTable, counters_max: int, reader: ChangeReader = ChangeReader.JOURNAL
    ) -> list[tuple[int, list[bytes]]]:
        return [(end_s, keys[:-1]) for end_s, keys in take_changes(self, counters_max, reader)]

    patch.setattr(SlotTable, "take_changes", take_most)


def reset_of_what_is_lent(patch: pytest.MonkeyPatch) -> None:
    """A counter is set to 0 here, whatever somebody has counted of it elsewhere."""

    def reset(self: LentCounters, counter: CounterName, now_s: float) -> bool:
        del now_s
        self.table.put(lent_counters.slot_of(counter[1]), *counter, 0)
        return True

    patch.setattr(LentCounters, "reset", reset)


def reset_done_twice(patch: pytest.MonkeyPatch) -> None:
    """A reset that is done is done once more a while later."""
    reset, end_windows = LentCounters.reset, LentCounters.end_windows
    again: list[tuple[LentCounters, CounterName, float]] = []

    def reset_and_remember(self: LentCounters, counter: CounterName, now_s: float) -> bool:
        is_done = reset(self, counter, now_s)
        if is_done:
            again.append((self, counter, -1.0))
        return is_done

    def reset_again(self: LentCounters, now_s: float) -> set[int]:
        for number, (counters, counter, at_s) in enumerate(again):
            if counters is self and at_s < 0:
                again[number] = (self, counter, now_s + 0.3)
            elif counters is self and at_s <= now_s:
                again[number] = (self, counter, inf)
                self.table.put(lent_counters.slot_of(counter[1]), *counter, 0)
        return end_windows(self, now_s)

    patch.setattr(LentCounters, "reset", reset_and_remember)
    patch.setattr(LentCounters, "end_windows", reset_again)


def reset_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    """A reset is done as soon as it has been asked for."""
    reset = LentCounters.reset

    def reset_sometime(self: LentCounters, counter: CounterName, now_s: float) -> bool:
        reset(self, counter, now_s)
        return True

    patch.setattr(LentCounters, "reset", reset_sometime)


def surrender_in_recovery_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Hits of a loan that ends while a partition recovers are in no part, and are not added to
    those that are told, whatever was restored."""
    end = Recovery.end

    def end_without(self: Recovery, counters: LentCounters) -> None:
        self.ended.clear()
        end(self, counters)

    patch.setattr(Recovery, "end", end_without)


# Each with a seed that finds it.
LOSSES: list[tuple[Plant, int]] = [
    (restart_that_forgets, 51),
    (restart_that_does_not_wait, 3),
    (claim_granted_in_recovery, 3),
    (snapshot_not_read, 31),
    (snapshot_added_to_what_is_told, 275),
    (changes_not_kept, 31),
    (reset_of_what_is_lent, 5),
    (reset_done_twice, 4),
    (reset_not_waited_for, 5),
    (surrender_in_recovery_forgotten, 159),
]
