"""Tracing what this process allocates over an interval."""

import tracemalloc

import pytest

from tollgate.actors.kernel import allocations


@pytest.fixture(autouse=True)
def _not_left_on():
    yield
    tracemalloc.stop()


def test_what_is_allocated_and_held_is_reported_by_line() -> None:
    before = bytearray(300_000)
    allocations.start_tracing()
    held = bytearray(3_000_000)
    report = allocations.finish_tracing()
    largest = report.splitlines()[0]
    assert float(largest.split()[0].replace(",", "")) == pytest.approx(3_000_000 / 1024, rel=0.01)
    assert f"{__file__}:" in largest
    assert report.splitlines()[-1].split()[1:3] == ["KiB", "in"]
    assert not tracemalloc.is_tracing()
    del before, held


def test_an_interval_that_was_never_finished_is_dropped() -> None:
    allocations.start_tracing()
    earlier = bytearray(3_000_000)
    allocations.start_tracing()
    assert "2,929" not in allocations.finish_tracing()
    del earlier


def test_finishing_what_was_never_begun_is_said() -> None:
    assert allocations.finish_tracing() == "not traced: the process was restarted meanwhile\n"
