"""The messages of a control plane (B20): those of its stream, and what it sends rules in."""

from tollgate.serve.ratelimit.codec.message_pool import MESSAGE_POOL, message_class

_PACKAGE = "ratelimit.config.ratelimit.v3"
RESOURCE_NAME = f"{_PACKAGE}.RateLimitConfig"
RESOURCE_TYPE_URL = f"type.googleapis.com/{RESOURCE_NAME}"
SERVICE_NAME = "envoy.service.discovery.v3.AggregatedDiscoveryService"
METHOD_NAME = "StreamAggregatedResources"
STREAM_METHOD = f"/{SERVICE_NAME}/{METHOD_NAME}"

DiscoveryRequest = message_class("envoy.service.discovery.v3.DiscoveryRequest")
DiscoveryResponse = message_class("envoy.service.discovery.v3.DiscoveryResponse")
ResourceMessage = message_class(RESOURCE_NAME)
_UNITS = MESSAGE_POOL.FindEnumTypeByName(f"{_PACKAGE}.RateLimitUnit").values_by_number


def unit_name(number: int) -> str:
    """The name of a unit; of a number without one, the number, as the reference prints it."""
    return _UNITS[number].name if number in _UNITS else str(number)
