"""What fronts are told: answers of a call together, items in order, one envelope for each front."""

from tollgate.actors.ratelimit.lending.messages import Answer, FrontItem, Outcome, ToFront
from tollgate.actors.ratelimit.lending.partition.leases import Leases


class FrontMail:
    """Of one incarnation. What is for a front without a lease is told to nobody."""

    def __init__(self, incarnation: int, leases: Leases) -> None:
        self._incarnation = incarnation
        self._leases = leases
        self._answers: dict[tuple[str, int], list[Outcome]] = {}
        self._touched: set[str] = set()

    def touch(self, *fronts: str) -> None:
        """Have an envelope go to these, whether there is an item for them or not."""
        self._touched.update(fronts)

    def answer(self, front: str, call: int, outcome: Outcome) -> None:
        """Tell what became of a request, together with others of its call."""
        self._answers.setdefault((front, call), []).append(outcome)

    def put_answers(self, front: str) -> None:
        """Put what was answered so far in the front's stream."""
        for (whose, call), outcomes in list(self._answers.items()):
            if whose == front:
                del self._answers[whose, call]
                self._put(front, Answer(call, outcomes))

    def put_all_answers(self) -> None:
        """The same of every front."""
        for front in {front for front, _ in self._answers}:
            self.put_answers(front)

    def send(self, front: str, item: FrontItem) -> None:
        """Put an item in the front's stream."""
        # What was answered before a slot is called back is done before it is given back.
        self.put_answers(front)
        self._put(front, item)

    def _put(self, front: str, item: FrontItem) -> None:
        lease = self._leases.by_front.get(front)
        if lease is not None:
            lease.stream.put(item)
            self._touched.add(front)

    def envelopes(
        self, wall_s: float, now_s: float, falls: int, *, is_recovering: bool
    ) -> dict[str, ToFront]:
        """What goes out now, by front. `falls`: of counts that have become smaller."""
        envelopes = {}
        for front in sorted(self._touched & self._leases.by_front.keys()):
            lease = self._leases.by_front[front]
            envelopes[front] = ToFront(
                self._incarnation,
                lease.number,
                lease.heard_s,
                wall_s,
                is_recovering,
                lease.before,
                lease.stream.taken,
                lease.stream.due(now_s),
                falls - lease.own_falls,
            )
        self._touched.clear()
        return envelopes
