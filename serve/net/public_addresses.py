"""Which addresses are anybody's on the internet, and which only we could reach.

Whoever calls an address that somebody else has told asks here when the socket is made, whatever the
name said before.
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network

_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # all that is handed out

Address = IPv4Address | IPv6Address


def is_public(address: Address) -> bool:
    """Whether an address can be anybody's on the internet: neither private, loopback, link-local,
    multicast, reserved, nor one of these in the clothes of IPv6."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address not in _GLOBAL_UNICAST:
            return False
    return address.is_global and not address.is_multicast
