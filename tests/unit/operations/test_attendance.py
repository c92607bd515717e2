"""Who hangs, look by look: `A` answers, `.` says nothing, `-` is away."""

import pytest

from tollgate.actors.operations.attendance import USUAL_BOUNDS, AttendanceList, Heard

HEARD = {"A": Heard.ANSWER, ".": Heard.NOTHING, "-": Heard.AWAY}
EVERY_S = USUAL_BOUNDS.look_every_s
START_LOOKS = int(USUAL_BOUNDS.start_within_s / EVERY_S)


class Looker:
    """Looks at seats at intervals."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.list = AttendanceList(USUAL_BOUNDS)

    def look(self, **heard: str) -> list[str]:
        """The seats that are to be ended; the time moves on to the next look."""
        hangs = self.list.look(self.now_s, {name: HEARD[what] for name, what in heard.items()})
        self.now_s += EVERY_S
        return [hang.seat for hang in hangs]

    def looks(self, heard: str) -> list[int]:
        """One seat, a look for each letter: the numbers of those after which it is to be ended."""
        return [number for number, what in enumerate(heard) if self.look(seat=what)]


@pytest.mark.parametrize(
    ("heard", "ended"),
    [
        pytest.param("AAAAAA", [], id="well"),
        pytest.param("A...", [3], id="frozen"),
        pytest.param("A..A..A..A", [], id="flapping"),
        pytest.param("A..A...", [6], id="flapping, then frozen"),
        pytest.param("...", [2], id="frozen before the looker came"),
        pytest.param("-" * START_LOOKS + "A", [], id="slow start, then well"),
        pytest.param("-" * START_LOOKS + "..A", [], id="slow start, slow first answer"),
        pytest.param("-" * (START_LOOKS + 1), [START_LOOKS], id="hangs in its start"),
        pytest.param("A" + "-" * START_LOOKS, [], id="killed, slow restart"),
        pytest.param("A-" + "...", [4], id="killed, hangs before its first answer"),
        pytest.param("A" + "-" * (START_LOOKS + 1), [START_LOOKS + 1], id="killed, no restart"),
        pytest.param("A-A...", [5], id="killed, back, frozen"),
        pytest.param("A..-..", [], id="silent, then killed by somebody else"),
        pytest.param("A...A", [3], id="frozen, not ended, thawed"),
        pytest.param("A....", [3, 4], id="frozen, and could not be ended"),
    ],
)
def test_one_seat(heard: str, ended: list[int]) -> None:
    assert Looker().looks(heard) == ended


def test_a_successor_has_time_to_start() -> None:
    looker = Looker()
    assert looker.looks("A...") == [3]
    looker.look()
    assert looker.looks("-" * START_LOOKS) == []
    assert looker.looks("A...") == [3]


def test_a_successor_that_hangs_is_ended_too() -> None:
    looker = Looker()
    looker.looks("A...")
    looker.look()
    assert looker.looks("...") == [2]
    looker.look()
    assert looker.looks("-" * (START_LOOKS + 1)) == [START_LOOKS]


def test_all_that_hang_are_ended_after_one_look() -> None:
    looker = Looker()
    for what in "A..":
        assert looker.look(first=what, second=what, third="A") == []
    assert looker.look(first=".", second=".", third="A") == ["first", "second"]
    assert looker.look(third="A") == []
    assert looker.look(first="A", second="A", third="A") == []


def test_they_are_so_many_at_most_and_the_others_follow() -> None:
    looker, ends_max = Looker(), USUAL_BOUNDS.ends_max
    names = [f"seat {number}" for number in range(2 * ends_max + 1)]
    for what in "A..":
        assert looker.look(**dict.fromkeys(names, what)) == []
    left, ended = names, []
    while left:
        ended.append(looker.look(**dict.fromkeys(left, ".")))
        left = [name for name in left if name not in ended[-1]]
    assert ended == [names[:ends_max], names[ends_max:-1], names[-1:]]


def test_those_that_cannot_be_ended_do_not_keep_another_from_it() -> None:
    looker, ends_max = Looker(), USUAL_BOUNDS.ends_max
    names = [f"seat {number}" for number in range(ends_max + 1)]
    for what in "A..":
        looker.look(**dict.fromkeys(names, what))
    tried = [looker.look(**dict.fromkeys(names, ".")) for _ in range(2)]
    assert tried == [names[:-1], [names[-1], *names[: ends_max - 1]]]


def test_a_seat_that_appears_is_new_and_one_that_is_not_asked_any_more_forgotten() -> None:
    looker = Looker()
    for what in "A..":
        looker.look(first=what)
    assert looker.look(second=".") == []
    assert looker.look(first=".", second=".") == []
    assert looker.look(first=".", second=".") == ["second"]


@pytest.mark.parametrize("late_s", [10.5, 25.0, 3_600.0])
def test_a_looker_that_was_late_begins_anew(late_s: float) -> None:
    looker = Looker()
    assert looker.looks("A..") == []
    looker.now_s += late_s
    assert looker.looks("...") == []
    assert looker.looks(".") == [0]


def test_a_looker_that_is_a_little_late_goes_on() -> None:
    looker = Looker()
    for what in "A..":
        assert not looker.looks(what)
        looker.now_s += USUAL_BOUNDS.late_by_s - 1
    assert looker.looks(".") == [0]


def test_a_looker_that_was_late_every_time_ends_nobody() -> None:
    looker = Looker()
    looker.looks("A")
    for _ in range(10):
        looker.now_s += EVERY_S + 1
        assert looker.looks(".") == []


def test_time_that_the_looker_missed_is_none_of_a_start() -> None:
    looker = Looker()
    assert looker.looks("--") == []
    looker.now_s += 10 * USUAL_BOUNDS.start_within_s
    assert looker.looks("-" * (START_LOOKS - 2)) == []
    assert looker.looks("-") == [0]


def test_the_reason_is_told() -> None:
    looker = Looker()
    looker.looks("A..")
    (hang,) = looker.list.look(looker.now_s, {"seat": Heard.NOTHING})
    assert hang.reason == "has not answered for 30 s"
    looker = Looker()
    looker.looks("-" * START_LOOKS)
    (hang,) = looker.list.look(looker.now_s, {"seat": Heard.AWAY})
    assert hang.reason == "has not started for 300 s"
