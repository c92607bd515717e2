"""JSON answers, read by hand from the bytes of ordinary answers, are what their messages say."""

import json

import pytest
from google.protobuf import json_format

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.response import OK, OVER_LIMIT
from tollgate.serve.ratelimit.codec.answers import (
    STATUS_WITHOUT_LIMIT,
    current_limit_bytes,
    response_bytes,
    status_bytes,
)
from tollgate.serve.ratelimit.codec.json_answers import response_to_json
from tollgate.serve.ratelimit.codec.messages import ResponseMessage


@pytest.mark.parametrize("remaining", [1, 127, 128, 16_384, 2**32 - 1])
@pytest.mark.parametrize("name", ["", "n", "ü" * 60, "n" * 200])
def test_json_of_answers_is_that_of_their_messages(remaining: int, name: str) -> None:
    limit = current_limit_bytes(2**32 - 1, Unit.YEAR, name)
    statuses = [
        status_bytes(OK, limit, remaining, 2**31),
        status_bytes(OVER_LIMIT, limit, 0, 0),
        STATUS_WITHOUT_LIMIT,
    ]
    payload = response_bytes(OVER_LIMIT, statuses)
    message = json_format.MessageToDict(ResponseMessage.FromString(payload))
    assert json.loads(response_to_json(payload)) == message
