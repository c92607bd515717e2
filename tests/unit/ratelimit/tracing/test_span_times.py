"""The times of spans: monotonic ones, told as times of the epoch."""

from uuid import UUID

from tollgate.serve.ratelimit.tracing.set_up import epoch_offset_s, random_uuid


class InterruptedClock:
    """The epoch is 1,000 s ahead of the monotonic clock. Between two looks some time goes by."""

    def __init__(self, pauses_s: list[float]) -> None:
        self._pauses_s = pauses_s
        self._at_s = 50.0

    def monotonic_s(self) -> float:
        self._at_s += self._pauses_s.pop(0)
        return self._at_s

    def now_s(self) -> float:
        return self.monotonic_s() + 1_000.0


def test_a_thread_that_has_to_wait_between_two_looks_is_no_error() -> None:
    clock = InterruptedClock([0, 3, 0, 0, 0, 0, 0, 0, 5])
    assert epoch_offset_s(clock) == 1_000.0


def test_the_middle_of_two_looks_is_the_time_of_the_third() -> None:
    clock = InterruptedClock([0, 0.25, 0.25] * 3)
    assert epoch_offset_s(clock) == 1_000.0


def test_an_instance_has_a_uuid_like_any_other() -> None:
    for bits in (0, 2**128 - 1, 0x0123456789ABCDEF0123456789ABCDEF):
        text = random_uuid(lambda _, bits=bits: bits)
        assert str(UUID(text)) == text
        assert UUID(text).version == 4
        assert UUID(text).variant == "specified in RFC 4122"
