"""A serialised RateLimitRequest as text for people, of bounded length."""

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from tollgate.serve.ratelimit.codec.messages import RequestMessage, ResponseMessage

_LENGTH_DELIMITED, _VARINT = 2, 0
_VARINT_BYTES_MAX = 10


def head_of(payload: bytes, bytes_max: int) -> bytes:
    """The payload, or as many of its first fields as fit; nothing of what is no message."""
    if len(payload) <= bytes_max:
        return payload
    at = end = 0
    while (end := _field_end(payload, at)) and end <= bytes_max:
        at = end
    return payload[:at]


def request_text(head: bytes, payload_bytes: int, chars_max: int) -> tuple[str, str]:
    """The domain of a request, and all that is kept of it, as protobuf writes messages."""
    try:
        message = RequestMessage.FromString(head)
    except DecodeError:
        return "", f"(not a RateLimitRequest: {payload_bytes} bytes)"
    text = text_format.MessageToString(message, as_one_line=True)
    if len(head) < payload_bytes or len(text) > chars_max:
        more = f" … ({payload_bytes} bytes)"
        text = text[: chars_max - len(more)] + more
    return message.domain[:chars_max], text


def has_limit(reply: bytes) -> bool:
    """True when a descriptor of the reply was held against a limit."""
    return any(
        status.HasField("current_limit") for status in ResponseMessage.FromString(reply).statuses
    )


def _field_end(payload: bytes, at: int) -> int:
    """The end of the field that begins there; 0 when none does."""
    try:
        tag, at = _varint(payload, at)
        if tag & 7 == _LENGTH_DELIMITED:
            length, at = _varint(payload, at)
            return at + length
        return _varint(payload, at)[1] if tag & 7 == _VARINT else 0
    except (IndexError, OverflowError):
        return 0


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place in range(_VARINT_BYTES_MAX):
        byte = payload[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number, at + place + 1
    raise OverflowError("a number on the wire has ten bytes at most")
