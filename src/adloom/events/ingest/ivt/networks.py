"""Membership of an address in many networks, by binary search."""

# pure

import ipaddress
from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class Networks:
    """A set of addresses, given as networks: lists of cloud providers have ten thousand of them."""

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        listed = list(networks)
        v4 = ipaddress.collapse_addresses(one for one in listed if isinstance(one, ipaddress.IPv4Network))
        v6 = ipaddress.collapse_addresses(one for one in listed if isinstance(one, ipaddress.IPv6Network))
        self._ranges = {4: _ranges(v4), 6: _ranges(v6)}

    def __contains__(self, address: Address) -> bool:
        firsts, lasts = self._ranges[address.version]
        number = int(address)
        before = bisect_right(firsts, number) - 1
        return before >= 0 and number <= lasts[before]


def _ranges(merged: Iterable[Network]) -> tuple[list[int], list[int]]:
    bounds = sorted((int(network.network_address), int(network.broadcast_address)) for network in merged)
    return [first for first, _ in bounds], [last for _, last in bounds]
