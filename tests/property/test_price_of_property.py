"""A property pays with examples alone: the rule of tests/conftest.py holds in this folder."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(min_value=0, max_value=65_535))
def test_a_connection_fails_a_property(port: int) -> None:
    with pytest.raises(pytest.fail.Exception, match="a property test may not use sockets"):
        socket.create_connection(("127.0.0.1", port))
