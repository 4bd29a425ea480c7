"""The address of a client behind trusted proxies."""

import ipaddress
from collections.abc import Sequence
from typing import Final

from adloom.runtime.settings import Network

IPv4OrIPv6 = ipaddress.IPv4Address | ipaddress.IPv6Address

# One household or one machine gets a /64 of IPv6: a limit per single address would limit nothing.
IPV6_PREFIX_LENGTH: Final = 64


def find_client_address(peer: str | None, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str:
    """Return the nearest address that is not a trusted proxy's.

    The client can write anything into the entries further to the left.
    """
    hops = [hop.strip() for line in forwarded_for for hop in line.split(",")]
    address = _parse(peer)
    while hops and address is not None and any(address in network for network in trusted):
        address = _parse(hops.pop()) or address
    return str(address) if address is not None else "unknown"


def rate_limit_key(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the network of an IPv6 address."""
    parsed = _parse(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, IPV6_PREFIX_LENGTH), strict=False))
    return address


def _parse(text: str | None) -> IPv4OrIPv6 | None:
    try:
        address = ipaddress.ip_address(text or "")
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
