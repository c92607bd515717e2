"""The time to read a body grows no faster than the body, whatever is in it."""

import contextlib
from collections.abc import Callable
from time import process_time

import pytest

from tollgate.serve.payments.api.bodies.readers import BODY_BYTES_MAX, FORM, read_body
from tollgate.serve.payments.api.rejections import BadRequest

JSON = "application/json"
SMALL, LARGE = BODY_BYTES_MAX // 8, BODY_BYTES_MAX // 2
# Four times the size may take four times as long, and as much again for a machine that is busy.
RATIO_MAX = 8.0
BODIES: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "brackets in brackets": (FORM, lambda size: b"a" + b"[b]" * (size // 3)),
    "brackets that open": (FORM, lambda size: b"a" + b"[" * size),
    "brackets that close": (FORM, lambda size: b"a" + b"]" * size),
    "brackets, encoded": (FORM, lambda size: b"a" + b"%5Bb%5D" * (size // 7)),
    "one long name": (FORM, lambda size: b"a" * size + b"=1"),
    "one long value": (FORM, lambda size: b"a=" + b"%41" * (size // 3)),
    "separators": (FORM, lambda size: b"&" * size),
    "many fields": (FORM, lambda size: b"a=1&" * (size // 4)),
    "arrays in arrays": (JSON, lambda size: b"[" * size),
    "objects in objects": (JSON, lambda size: b'{"a":' * (size // 5)),
    "a long number": (JSON, lambda size: b'{"a":' + b"1" * size + b"}"),
    "a long fraction": (JSON, lambda size: b'{"a":0.' + b"1" * size + b"}"),
    "a long text": (JSON, lambda size: b'{"a":"' + b"\\u0041" * (size // 6) + b'"}'),
    "many names": (
        JSON,
        lambda size: b"{%b}" % b",".join(b'"%06d":1' % number for number in range(size // 11)),
    ),
}


def seconds(content_type: str, body: bytes) -> float:
    """The shortest of some tries."""
    tries = []
    for _ in range(5):
        start = process_time()
        with contextlib.suppress(BadRequest):
            read_body(content_type, body)
        tries.append(process_time() - start)
    return min(tries)


@pytest.mark.parametrize("name", BODIES)
def test_a_larger_body_takes_no_more_than_its_share(name: str) -> None:
    content_type, body = BODIES[name]
    small = max(seconds(content_type, body(SMALL)), 0.001)
    assert seconds(content_type, body(LARGE)) / small < RATIO_MAX
