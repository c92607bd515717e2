"""Hints in any order, twice, changed, too late or of another payment: they say what was done, or
nothing (part H, Step by step)."""

from hypothesis import given
from hypothesis import strategies as st

from tollgate.serve.payments.checkout.hints import (
    LIVES_MS,
    Facts,
    HintProblem,
    HintSealer,
    StepsTaken,
)
from tollgate.serve.payments.checkout.steps import HINTS_OF, HINTS_TOTAL, STEPS, Step
from tollgate.serve.payments.secrets.master_secret import MasterSecret

NOW_MS = 1_800_000_000_000
SEALER = HintSealer(MasterSecret(b"0123456789abcdef0123456789abcdef"))
PAYMENT, OTHER = SEALER.payment_id("a payment"), SEALER.payment_id("another")
FACTS = {step: Facts(word=step.value) for step in STEPS}
ALL = SEALER.issue(PAYMENT, NOW_MS, FACTS.items())
# The hint of each place, and so of which step it is.
OWNER = [step for step in STEPS for _ in range(HINTS_OF[step])]
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."


@given(st.lists(st.integers(0, HINTS_TOTAL - 1), max_size=24))
def test_hints_tell_the_steps_that_were_taken_in_whatever_order(places: list[int]) -> None:
    """Those that leave a gap are refused; what is there twice counts once."""
    found = SEALER.read(PAYMENT, NOW_MS, [ALL[place] for place in places])
    given_ = set(places)
    is_gapless = given_ == set(range(len(given_)))
    ends = {0, *(position + 1 for position in range(HINTS_TOTAL) if _ends(position))}
    if not is_gapless or len(given_) not in ends:
        assert isinstance(found, HintProblem)
        return
    assert isinstance(found, StepsTaken)
    steps = [step for step in STEPS if OWNER.index(step) < len(given_)]
    assert found.found == {step: FACTS[step] for step in steps}
    assert (found.next_step is None) == (len(given_) == HINTS_TOTAL)


def _ends(position: int) -> bool:
    return position + 1 == HINTS_TOTAL or OWNER[position + 1] is not OWNER[position]


@given(st.integers(0, HINTS_TOTAL - 1), st.data())
def test_a_hint_that_was_changed_says_nothing(place: int, data: st.DataObject) -> None:
    hint = ALL[place]
    position = data.draw(st.integers(0, len(hint) - 1))
    changed = data.draw(st.sampled_from([each for each in ALPHABET if each != hint[position]]))
    hints = [*ALL[:place], hint[:position] + changed + hint[position + 1 :], *ALL[place + 1 :]]
    # (the last character may have bits that mean nothing: then the hint is the same)
    found = SEALER.read(PAYMENT, NOW_MS, hints)
    is_spelling = isinstance(found, StepsTaken) and found.found == FACTS
    assert isinstance(found, HintProblem) or is_spelling


@given(st.integers(0, HINTS_TOTAL - 1), st.integers(-1, 1))
def test_a_hint_is_for_one_payment_and_for_a_while(place: int, around_ms: int) -> None:
    assert isinstance(SEALER.read(OTHER, NOW_MS, [ALL[place]]), HintProblem)
    end = SEALER.read(PAYMENT, NOW_MS + LIVES_MS + around_ms, ALL)
    assert isinstance(end, HintProblem if around_ms >= 0 else StepsTaken)


@given(st.sampled_from(STEPS))
def test_a_step_has_one_outcome(step: Step) -> None:
    twice = SEALER.issue(PAYMENT, NOW_MS, [(step, Facts(word="otherwise"))])
    assert isinstance(SEALER.read(PAYMENT, NOW_MS, [*ALL, *twice]), HintProblem)
