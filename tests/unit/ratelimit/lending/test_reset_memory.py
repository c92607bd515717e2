"""Resets that are remembered: the last one of each counter, in order, and no more than so many."""

from tollgate.actors.ratelimit.lending.partition.resets import Resets


def test_of_two_resets_of_a_counter_the_later_one_is_remembered() -> None:
    resets = Resets(10)
    resets.note((60, b"k"), 4, 1.0)
    resets.note((60, b"k"), 3, 2.0)
    assert resets.epoch((60, b"k")) == 4
    assert (resets.epoch((60, b"other")), resets.epoch((120, b"k"))) == (0, 0)
    assert [resets.is_void((60, b"k"), at_s) for at_s in (0.5, 1.0, 1.5)] == [True, True, False]
    assert not resets.is_void((60, b"other"), 0.0)


def test_those_that_somebody_has_not_heard_of_are_told() -> None:
    resets = Resets(10)
    for number, key in enumerate([b"a", b"b", b"a", b"c"]):
        resets.note((60, key), number + 1)
    resets.note((120, b"a"), 9)
    assert resets.number == 5
    assert resets.between(2, 4) == [(60, [b"c", b"a"], [4, 3])]
    assert resets.between(0, 3) == [(60, [b"a", b"b"], [3, 2])]
    assert resets.between(4, 5) == [(120, [b"a"], [9])]
    assert resets.between(5, 5) == []
    other = Resets(10)
    other.note_all(resets.between(0, 5))
    assert [other.epoch((60, key)) for key in (b"a", b"b", b"c")] == [3, 2, 4]
    assert not other.is_void((60, b"a"), 0.0), "another process did it, at another time"


def test_they_are_bounded_and_those_go_first_whose_windows_end_first() -> None:
    resets = Resets(2)
    for number, counter in enumerate([(120, b"a"), (60, b"b"), (120, b"c")]):
        resets.note(counter, number + 1)
    assert len(resets) == 2
    assert resets.epoch((60, b"b")) == 0
    resets.note((120, b"d"), 4)
    assert [resets.epoch((120, key)) for key in (b"a", b"c", b"d")] == [0, 3, 4]
    resets.end_window(120)
    assert len(resets) == 0
