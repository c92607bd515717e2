"""The hosts that anybody on the internet may reach, and those that only we could.

    localhost, 127.0.0.0/8, ::1                         loopback        RFC 6761, RFC 6890
    10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7    private         RFCs 1918, 6598, 4193
    169.254.169.254, metadata.google.internal, …        metadata        the clouds' own services
    other addresses that are nobody's on the internet   private         IANA's special registries
    names with one label, .local, .internal, .lan, …    private         RFC 6762, ICANN

An IPv4 address may be written as one number, in octal or in hex: everything that opens URLs as
browsers do takes those for addresses (WHATWG URL, "IPv4 parser"), and so does this. Names and
numbers are judged by this one rule; what a name leads to is judged again when it is dialled.
"""

import re
from enum import Enum
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

# Judgements of so many hosts are remembered.
HOSTS_MAX = 4_096
# Longer texts are no IPv4 addresses, however they are written.
ADDRESS_LENGTH_MAX = 64
# (HAProxy counts connections by the same: `serve/node/haproxy.py`)
CALLER_NETWORK_BITS = 64

Address = IPv4Address | IPv6Address

_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # all that is handed out
_METADATA_NAMES = frozenset({"metadata.google.internal", "metadata.goog", "instance-data"})
_METADATA_ADDRESSES = frozenset({"169.254.169.254", "169.254.170.2", "100.100.100.200"})
_METADATA_ADDRESS_6 = IPv6Address("fd00:ec2::254")
_PRIVATE_ENDINGS = (
    ".local",
    ".internal",
    ".lan",
    ".intranet",
    ".corp",
    ".home.arpa",
    ".localdomain",
)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|\d+")


class Exposure(Enum):
    """The reason why only some can reach a host."""

    LOOPBACK = "on the reader's own machine"
    PRIVATE = "in a private network"
    METADATA = "a cloud's metadata service, which hands out credentials"


@lru_cache(maxsize=HOSTS_MAX)
def exposure_of(host: str) -> Exposure | None:
    """The reason why only some can reach a host, given as a lower-case name or address (IPv6
    without brackets); None for one that everybody may reach."""
    name = host.removesuffix(".")
    if not name:
        return None
    if name in _METADATA_NAMES:
        return Exposure.METADATA
    if name == "localhost" or name.endswith(".localhost"):
        return Exposure.LOOPBACK
    address = address_of(name)
    if address is not None:
        return _exposure_of_address(address)
    if "." not in name or name.endswith(_PRIVATE_ENDINGS):
        return Exposure.PRIVATE
    return None


def is_public(address: Address) -> bool:
    """Tells whether an address can be anybody's on the internet: neither private, loopback,
    link-local, multicast, reserved, nor one of these inside of an IPv6 address."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address not in _GLOBAL_UNICAST:
            return False
    return address.is_global and not address.is_multicast


def is_loopback(address: Address) -> bool:
    """Tells whether an address is this machine's own, for nobody else to reach."""
    inner = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (inner or address).is_loopback


def network_of(address: str) -> str:
    """The network by which callers are counted: an IPv4 address itself, also inside of an IPv6 one
    (RFC 4291, 2.5.5.2); of another IPv6 address the /64, all of which is one subscriber's (RFC
    6177). A text that is no address stays."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((found, CALLER_NETWORK_BITS), strict=False))


def address_of(host: str) -> Address | None:
    """The address that a host is, in any of its spellings; None for a name."""
    if ":" in host:
        try:
            return IPv6Address(host.partition("%")[0])
        except ValueError:
            return None
    parts = host.split(".")
    if len(host) > ADDRESS_LENGTH_MAX or len(parts) > 4:
        return None
    if not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    numbers = [_number(part) for part in parts]
    last = numbers.pop()
    if any(number > 255 for number in numbers) or last >= 256 ** (4 - len(numbers)):
        return None
    return IPv4Address(last + sum(n << 8 * (3 - i) for i, n in enumerate(numbers)))


def _exposure_of_address(address: Address) -> Exposure | None:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if str(address) in _METADATA_ADDRESSES or address == _METADATA_ADDRESS_6:
        return Exposure.METADATA
    if address.is_loopback:
        return Exposure.LOOPBACK
    return None if is_public(address) else Exposure.PRIVATE


def _number(text: str) -> int:
    if text[:2].lower() == "0x":
        return int(text[2:] or "0", 16)
    if len(text) > 1 and text[0] == "0" and all(digit < "8" for digit in text):
        return int(text, 8)
    return int(text)
