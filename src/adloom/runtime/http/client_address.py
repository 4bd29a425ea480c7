"""The address of a client behind trusted proxies."""

import ipaddress
import re
import socket
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from adloom.runtime.http.networks import Address, Networks

# One household or one machine gets a /64 of IPv6: a limit per single address would limit nothing.
IPV6_PREFIX_LENGTH: Final = 64
UNKNOWN: Final = "unknown"  # All clients whose address is not known count as one.

PEERS_CACHED_MAX: Final = 256  # Behind proxies there are few.

_PORT: Final = re.compile(r"(:[0-9]{1,5})?")


def find_client_address(peer: str | None, forwarded_for: Sequence[str], trusted: Networks) -> str:
    """Return the nearest address that is not a trusted proxy's, or `UNKNOWN`."""
    address = find_client(peer, forwarded_for, trusted)
    return str(address) if address is not None else UNKNOWN


def find_client(peer: str | None, forwarded_for: Sequence[str], trusted: Networks) -> Address | None:
    """Return the nearest address that is not a trusted proxy's; None if it cannot be read.

    The client can write anything into the entries further to the left. So an entry that cannot be read ends the walk:
    what is left of it is not believed.
    """
    address = _parse_peer(peer)
    if not forwarded_for:
        return address
    hops = [hop for line in forwarded_for for hop in line.split(",") if hop.strip()]
    while hops and address is not None and address in trusted:
        address = _parse_hop(hops.pop())
    return address


def parse_address(text: str) -> Address:
    """Parse an address as `ipaddress` does, in a third of the time; ValueError if it is none."""
    if ":" in text:
        address = ipaddress.ip_address(text)
        return getattr(address, "ipv4_mapped", None) or address
    try:
        return ipaddress.IPv4Address(socket.inet_pton(socket.AF_INET, text))
    except OSError as error:
        raise ValueError(f"{text!r} is no address.") from error


def find_rate_limit_key(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the network of an IPv6 address."""
    parsed = _parse(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, IPV6_PREFIX_LENGTH), strict=False))
    return address


def _parse_hop(text: str) -> Address | None:
    """Parse an entry of `X-Forwarded-For`: some proxies add a port, and brackets around IPv6."""
    text = text.strip().strip('"')
    if ":" not in text:
        return _parse(text)
    if text.startswith("["):
        inside, bracket, rest = text[1:].partition("]")
        return _parse(inside) if bracket and _PORT.fullmatch(rest) else None
    host, _, port = text.partition(":")
    return _parse(host if _PORT.fullmatch(f":{port}") else text)


def _parse(text: str | None) -> Address | None:
    try:
        return parse_address(text or "")
    except ValueError:
        return None


_parse_peer: Final = lru_cache(PEERS_CACHED_MAX)(_parse)
