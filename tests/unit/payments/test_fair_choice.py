"""Who is called next, and who waits: each limit of the choice, at its edge."""

from collections.abc import Iterator
from itertools import count

from tollgate.actors.ledger.delivery.batches import DueDelivery
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.serve.payments.webhooks.fair_choice import (
    MERCHANT_CALLS_MAX,
    OVERLAP,
    SLOW_MS,
    FairChoice,
)

CALLS_MAX = 32
HALF = CALLS_MAX // 2
OF_A_HOST = CALLS_MAX // 4
NUMBERS: Iterator[int] = count(1)


def due(
    book: int | None = None, host: str = "", *, is_test: bool = False, failures: int = 0
) -> DueDelivery:
    """A webhook of its own: of a merchant and on a host of their own unless they are named."""
    number = next(NUMBERS)
    of = BookId(f"{number if book is None else 10**9 + book:024x}")
    url = f"https://{host or f'h{number}.example'}/hook"
    return DueDelivery(EntityId(f"{number:024x}"), of, url, is_test, failures)


def many(number: int, **alike: object) -> list[DueDelivery]:
    return [due(**alike) for _ in range(number)]  # type: ignore[arg-type]


def test_a_merchant_has_two_calls_under_way_and_no_more() -> None:
    choice = FairChoice(CALLS_MAX)
    assert len(choice.choose(many(5, book=1), 0)) == MERCHANT_CALLS_MAX
    assert choice.choose(many(1, book=1), 0) == []
    assert len(choice.choose(many(1, book=2), 0)) == 1


def test_a_host_has_a_quarter_of_the_calls() -> None:
    choice = FairChoice(CALLS_MAX)
    assert len(choice.choose(many(HALF, host="relay.example"), 0)) == OF_A_HOST
    assert len(choice.choose(many(1), 0)) == 1


def test_test_merchants_take_nothing_from_live_ones_on_the_same_host() -> None:
    choice = FairChoice(CALLS_MAX)
    choice.choose(many(HALF, host="relay.example", is_test=True), 0)
    assert len(choice.choose(many(HALF, host="relay.example"), 0)) == OF_A_HOST


def test_test_merchants_take_nothing_from_live_ones_of_either_half() -> None:
    choice = FairChoice(CALLS_MAX)
    choice.choose(many(CALLS_MAX, is_test=True) + many(CALLS_MAX, is_test=True, failures=1), 0)
    assert len(choice.choose(many(CALLS_MAX), 0)) == HALF
    assert len(choice.choose(many(CALLS_MAX, failures=1), 0)) == HALF


def test_receivers_that_failed_leave_the_quick_half_alone() -> None:
    choice = FairChoice(CALLS_MAX)
    assert len(choice.choose(many(CALLS_MAX, failures=1), 0)) == HALF
    assert len(choice.choose(many(CALLS_MAX), 0)) == HALF


def test_a_call_that_turns_out_to_be_slow_makes_room_for_a_quick_one() -> None:
    choice = FairChoice(CALLS_MAX)
    choice.choose(many(HALF), 0)
    assert choice.choose(many(1), SLOW_MS) == []
    assert len(choice.choose(many(CALLS_MAX), SLOW_MS + 1)) == HALF


def test_there_is_an_end_to_calls_that_turn_out_to_be_slow() -> None:
    choice = FairChoice(CALLS_MAX)
    turns = range(0, 100 * (SLOW_MS + 1), SLOW_MS + 1)
    begun = sum(len(choice.choose(many(CALLS_MAX), now_ms)) for now_ms in turns)
    assert begun == OVERLAP * CALLS_MAX


def test_slow_calls_of_test_merchants_do_not_bring_live_ones_to_that_end() -> None:
    choice = FairChoice(CALLS_MAX)
    for now_ms in range(0, 100 * (SLOW_MS + 1), SLOW_MS + 1):
        choice.choose(many(CALLS_MAX, is_test=True), now_ms)
    assert len(choice.choose(many(CALLS_MAX), now_ms)) == HALF


def test_who_was_served_longest_ago_is_next() -> None:
    choice = FairChoice(2)  # (one quick call at a time)
    first, second = due(book=1), due(book=2)
    order = []
    for _ in range(4):
        (chosen,) = choice.choose([first, second], 0)
        choice.ended(chosen.webhook, 1, calls=1)
        order.append(chosen)
    assert order == [first, second, first, second]


def test_a_receiver_known_as_slow_begins_among_the_slow_ones() -> None:
    choice = FairChoice(CALLS_MAX)
    slow = due(book=1)
    choice.choose([slow], 0)
    choice.ended(slow.webhook, SLOW_MS + 1, calls=1)
    choice.choose(many(CALLS_MAX), 0)  # (fills the quick half)
    assert choice.choose([slow], 0) == [slow]
    other_of_the_merchant = due(book=1)
    assert choice.choose([other_of_the_merchant], 0) == [other_of_the_merchant]


def test_a_webhook_that_was_not_claimed_can_be_chosen_again() -> None:
    choice = FairChoice(CALLS_MAX)
    lost, kept = due(), due()
    assert choice.choose([lost, kept], 0) == [lost, kept]
    choice.unclaimed([lost, kept], [kept.webhook])
    assert choice.choose([lost, kept], 0) == [lost]
