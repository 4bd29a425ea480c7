"""Sets of IP addresses."""

# pure

from bisect import bisect_right
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, collapse_addresses
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network


class Networks:
    """A set of addresses, given as networks: lists of cloud providers have ten thousand of them."""

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        listed = list(networks)
        self._v4 = _build_ranges(collapse_addresses(one for one in listed if isinstance(one, IPv4Network)))
        self._v6 = _build_ranges(collapse_addresses(one for one in listed if isinstance(one, IPv6Network)))

    def __bool__(self) -> bool:
        return bool(self._v4[0] or self._v6[0])

    def __contains__(self, address: Address) -> bool:
        firsts, lasts = self._v4 if isinstance(address, IPv4Address) else self._v6
        if not firsts:
            return False
        number = int(address)
        before = bisect_right(firsts, number) - 1
        return before >= 0 and number <= lasts[before]


def _build_ranges(merged: Iterable[Network]) -> tuple[list[int], list[int]]:
    bounds = sorted((int(network.network_address), int(network.broadcast_address)) for network in merged)
    return [first for first, _ in bounds], [last for _, last in bounds]
