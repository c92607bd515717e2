"""A client of the rate-limit service, and the enums of its messages."""

import grpc

from tollgate.serve.ratelimit.codec.messages import METHOD_PATH, RequestMessage, ResponseMessage

Code = ResponseMessage.Code
Unit = ResponseMessage.RateLimit.Unit


class RateLimitServiceStub:
    """Its method, as gRPC's own generator names it."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.ShouldRateLimit = channel.unary_unary(
            METHOD_PATH, RequestMessage.SerializeToString, ResponseMessage.FromString
        )
