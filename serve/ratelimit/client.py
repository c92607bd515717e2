"""Asks a rate-limit service one question over gRPC and puts the answer into words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from tollgate.actors.ratelimit.decision.response import REMAINING_UNLIMITED
from tollgate.actors.ratelimit.rules.descriptors import Entries
from tollgate.serve.ratelimit.codec.messages import METHOD_PATH, RequestMessage, ResponseMessage

CALL_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class ClientTls:
    """Paths of PEM files: the authority that signed the server's certificate (empty: the system's
    authorities), and the pair that this client shows (both empty: none)."""

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


class CallFailed(Exception):  # noqa: N818 (a refusal reads as what is refused)
    """The call ended with an error status; the text is `STATUS: message`."""


def parse_descriptor(text: str) -> Entries:
    """`name=value,name=value`; ValueError unless each pair has exactly one `=`."""
    pairs = [pair.split("=") for pair in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"invalid descriptor list '{text}': write name=value,name=value")
    return tuple((name, value) for name, value in pairs)


def ask(
    dial_string: str,
    domain: str,
    descriptors: Sequence[Entries],
    hits_addend: int = 1,
    tls: ClientTls | None = None,
) -> Any:
    """The RateLimitResponse of the service at `host:port` or `unix:///path`.

    Raises CallFailed for an error status, OSError for unreadable files of `tls`.
    """
    request = RequestMessage(domain=domain, hits_addend=hits_addend)
    for entries in descriptors:
        descriptor = request.descriptors.add()
        for key, value in entries:
            descriptor.entries.add(key=key, value=value)
    with _channel(dial_string, tls) as channel:
        call = channel.unary_unary(
            METHOD_PATH, RequestMessage.SerializeToString, ResponseMessage.FromString
        )
        try:
            return call(request, timeout=CALL_TIMEOUT_S)
        except grpc.RpcError as error:
            raise CallFailed(f"{error.code().name}: {error.details()}") from None


def _channel(dial_string: str, tls: ClientTls | None) -> grpc.Channel:
    # A certificate is good for a host name, and a path is none: behind a socket is this host.
    is_unix = dial_string.startswith("unix:")
    options = (("grpc.default_authority", "localhost"),) if is_unix else ()
    if tls is None:
        return grpc.insecure_channel(dial_string, options)
    files = (tls.ca_file, tls.key_file, tls.cert_file)
    ca, key, certificate = (Path(file).read_bytes() if file else None for file in files)
    credentials = grpc.ssl_channel_credentials(ca, key, certificate)
    return grpc.secure_channel(dial_string, credentials, options)


def lines_of(descriptors: Sequence[Entries], response: Any) -> Iterator[str]:
    """The answer for people: the overall code, a line per descriptor, the headers."""
    codes, units = ResponseMessage.Code, ResponseMessage.RateLimit.Unit
    yield f"overall: {_name(codes, response.overall_code)}"
    for entries, status in zip(descriptors, response.statuses, strict=False):
        facts = [_name(codes, status.code)]
        if status.HasField("current_limit"):
            limit = status.current_limit
            facts.append(f"limit {limit.requests_per_unit}/{_name(units, limit.unit)}")
            facts.append(f"remaining {status.limit_remaining}")
        elif status.limit_remaining == REMAINING_UNLIMITED:
            facts.append("unlimited")
        else:
            facts.append("no limit")
        if status.HasField("duration_until_reset"):
            facts.append(f"reset {status.duration_until_reset.seconds}s")
        asked = ",".join(f"{name}={value}" for name, value in entries)
        yield f"{asked}: {', '.join(facts)}"
    for header in response.response_headers_to_add:
        yield f"header {header.key}: {header.value}"


def _name(enum: Any, number: int) -> str:
    return str(enum.Name(number)) if number in enum.values() else str(number)
