"""The message classes of the rate-limit protocol, and the names it is called by (B15)."""

from tollgate.serve.ratelimit.codec.message_pool import message_class

SERVICE_NAME = "envoy.service.ratelimit.v3.RateLimitService"
METHOD_NAME = "ShouldRateLimit"
METHOD_PATH = f"/{SERVICE_NAME}/{METHOD_NAME}"

RequestMessage = message_class("envoy.service.ratelimit.v3.RateLimitRequest")
ResponseMessage = message_class("envoy.service.ratelimit.v3.RateLimitResponse")
StructMessage = message_class("google.protobuf.Struct")
