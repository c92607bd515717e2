"""Remembers plans by the bytes of their requests: those that are asked for again stay.

    recent  --when they are half of all-->  older  --in their turn-->  leaving  --one by one-->

A plan that is used comes back among the recent ones, from wherever it is. So a flood of requests
that come once drives out its own kind, and what is asked for in between stays; a plan that is used
where it is costs nothing but the look. Plans leave one by one, for room: to free thousands at once
would stall the calls.
"""

from collections import OrderedDict
from threading import Lock

from tollgate.actors.ratelimit.decision.plan import RequestPlan

Plans = OrderedDict[bytes, RequestPlan]


class PlanMemo:
    """At most `entries_max` plans. Threads may share it."""

    __slots__ = ("_entries_max", "_leaving", "_lock", "_older", "_recent_max", "recent")

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._recent_max = max(1, entries_max // 2)
        self._lock = Lock()
        self.recent: Plans = OrderedDict()
        """Where plans are looked up first, without a call of this class."""
        self._older: Plans = OrderedDict()
        self._leaving: Plans = OrderedDict()

    def __len__(self) -> int:
        return len(self.recent) + len(self._older) + len(self._leaving)

    def get(self, payload: bytes) -> RequestPlan | None:
        plan = self.recent.get(payload)
        if plan is not None:
            return plan
        if payload not in self._older and payload not in self._leaving:
            return None
        with self._lock:
            plan = self._older.pop(payload, None) or self._leaving.pop(payload, None)
            if plan is not None:
                self.recent[payload] = plan
        return plan

    def put(self, payload: bytes, plan: RequestPlan) -> None:
        if not self._entries_max:
            return
        with self._lock:
            self.recent[payload] = plan
            if len(self.recent) >= self._recent_max and not self._leaving:
                self._leaving, self._older, self.recent = self._older, self.recent, OrderedDict()
            # (each time anew, and without a call: every new request comes by here)
            while len(self.recent) + len(self._older) + len(self._leaving) > self._entries_max:
                (self._leaving or self._older or self.recent).popitem(last=False)
