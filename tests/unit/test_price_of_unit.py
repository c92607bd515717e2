"""A unit test pays nothing: the rule of tests/conftest.py holds in this folder."""

import time
from pathlib import Path

import pytest


def test_a_file_fails_a_unit_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="a unit test may not use files"):
        Path(__file__).read_text()


def test_a_clock_fails_a_unit_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="a unit test may not use the wall clock"):
        time.time()
