"""A unit test pays nothing: the rule of tests/conftest.py holds in this folder."""

import time
from datetime import date
from pathlib import Path
from time import monotonic as kept_clock

import pytest


def test_a_file_fails_a_unit_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="a unit test may not use files"):
        Path(__file__).read_text()


def test_a_clock_fails_a_unit_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="a unit test may not use the wall clock"):
        time.time()


def test_a_clock_that_a_module_keeps_fails_a_unit_test() -> None:
    for clock in (kept_clock, date.today):
        with pytest.raises(pytest.fail.Exception, match="a unit test may not use the wall clock"):
            clock()
