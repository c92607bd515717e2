"""What a lending partition says of the calls that it has taken."""

import pickle

from tests.support.manual_clock import ManualClock
from tollgate.actors.ratelimit.lending.messages import ToPartition
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.partition import LendingPartition

NOW_S = 1_000_000


def test_messages_and_standing_calls_are_counted() -> None:
    partition = LendingPartition(Terms(), 1, ManualClock(NOW_S), is_new=True)
    assert partition.describe()["calls"] == 0
    message = ToPartition("front", 0, 0, 0.0, NOW_S, 0, [])
    partition.receive(pickle.dumps(message))
    partition.receive(pickle.dumps(message))
    partition.wait_for_mail("front", 0.0)
    assert partition.describe()["calls"] == 3
