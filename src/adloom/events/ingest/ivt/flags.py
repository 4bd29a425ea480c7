"""What makes traffic doubtful: the sender is a crawler, a prefetch, in a data centre, or sends too much.

No event is refused for it. A doubtful event is counted and marked, and neither billed nor learned from.
"""

# pure

import ipaddress
import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from adloom.events.log.event import Mark

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

# We keep only the network of an address, which is no household's, and only where a mark is about it.
IPV4_KEPT_LENGTH: Final = 24
IPV6_KEPT_LENGTH: Final = 48
NETWORKS_CACHED_MAX: Final = 1_024
# One household or one machine gets a /64 of IPv6, so single addresses say nothing. Many get a /56, and anybody may
# have a /48: those are counted too, and may send more by a factor. (The bytes of the prefix, and the factor.)
IPV6_COUNTED_BYTES: Final = 8
IPV6_WIDER: Final = ((7, 2), (6, 4))

_AHEAD: Final = re.compile(rb"prefetch|prerender", re.IGNORECASE)


class Networks:
    """A set of addresses, given as networks: lists of cloud providers have ten thousand of them."""

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        listed = list(networks)
        v4 = ipaddress.collapse_addresses(one for one in listed if isinstance(one, ipaddress.IPv4Network))
        v6 = ipaddress.collapse_addresses(one for one in listed if isinstance(one, ipaddress.IPv6Network))
        self._ranges = {4: _build_ranges(v4), 6: _build_ranges(v6)}

    def __contains__(self, address: Address) -> bool:
        firsts, lasts = self._ranges[address.version]
        number = int(address)
        before = bisect_right(firsts, number) - 1
        return before >= 0 and number <= lasts[before]


def _build_ranges(merged: Iterable[Network]) -> tuple[list[int], list[int]]:
    bounds = sorted((int(network.network_address), int(network.broadcast_address)) for network in merged)
    return [first for first, _ in bounds], [last for _, last in bounds]


# Behind these is an undeclared proxy, or a server that reports for its visitors.
# (What Python calls private includes the networks of documentation, which examples use as clients.)
INTERNAL: Final = Networks(
    ipaddress.ip_network(network)
    for network in (
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::1/128",
        "fc00::/7",
        "fe80::/10",
    )
)


class TrafficFlags(msgspec.Struct, frozen=True, gc=False):
    """The marks of one event, and the network it came from if a mark is about that."""

    marks: tuple[Mark, ...] = ()
    client_network: str | None = None


NO_FLAGS: Final = TrafficFlags()


class SenderCounts:
    """Where the parts of a process that count by address keep what they found for a sender: they look it up once."""

    __slots__ = ("offers", "requests")

    def __init__(self) -> None:
        self.requests: Any = None  # Of the rate limit.
        self.offers: Any = None  # Of what may hold budget.

    def __eq__(self, other: object) -> bool:
        """Senders are the same whatever was counted of them."""
        return isinstance(other, SenderCounts)

    __hash__ = object.__hash__


class Sender(msgspec.Struct, frozen=True, gc=False):
    """What a request says of its sender, the same for all of its events."""

    marks: tuple[Mark, ...] = ()
    address: Address | None = None
    rate_key: bytes | None = None  # None where the rate is not counted.
    counts: SenderCounts | None = None  # None too where senders of all processes are one.


UNKNOWN_SENDER: Final = Sender()
# Behind a proxy of ours whose header cannot be read. All of them count as one.
UNREADABLE_SENDER: Final = Sender(rate_key=b"?")


def is_prefetch(purposes: Sequence[bytes]) -> bool:
    """Return whether a browser fetches before its visitor asks, by the headers of purpose."""
    return any(_AHEAD.search(purpose) for purpose in purposes)


def describe_sender(address: Address, *, data_centers: Networks) -> Sender:
    is_internal = address in INTERNAL
    return Sender(
        (Mark.DATA_CENTER,) if address in data_centers else (),
        address,
        None if is_internal else address.packed[:IPV6_COUNTED_BYTES],
        None if is_internal else SenderCounts(),
    )


def add_header_marks(sender: Sender, *, is_crawler: bool, is_prefetch: bool) -> Sender:
    marks = (*((Mark.CRAWLER,) if is_crawler else ()), *((Mark.PREFETCH,) if is_prefetch else ()))
    return msgspec.structs.replace(sender, marks=(*marks, *sender.marks)) if marks else sender


def build_flags(sender: Sender, *, is_flood: bool) -> TrafficFlags:
    marks = (*sender.marks, Mark.ADDRESS_FLOOD) if is_flood else sender.marks
    if not marks:
        return NO_FLAGS
    is_about_address = is_flood or Mark.DATA_CENTER in marks
    return TrafficFlags(
        marks, truncate_address(sender.address) if is_about_address and sender.address else None
    )


@lru_cache(NETWORKS_CACHED_MAX)
def truncate_address(address: Address) -> str:
    """Return the network of an address, without the part that identifies one visitor."""
    length = IPV4_KEPT_LENGTH if isinstance(address, ipaddress.IPv4Address) else IPV6_KEPT_LENGTH
    return str(ipaddress.ip_network((address, length), strict=False))


MINUTE: Final = timedelta(minutes=1)
NO_TIME: Final = timedelta()
# About 10 MB. Beyond it the address not seen for the longest time is forgotten. One that floods is seen too
# often for that: 50,000 others would have to come between two of its events.
ADDRESSES_MAX: Final = 50_000


class AddressMinute:
    """The events of an address in a minute that begins with the first of them."""

    __slots__ = ("_began_at", "_ends_at", "events")

    def __init__(self, now: datetime) -> None:
        self._began_at = now
        self._ends_at = now + MINUTE
        self.events = 0

    def count_event(self, now: datetime) -> int:
        """Count one more, and return how many there are in the minute."""
        # A clock that was set back begins another minute too: else the old one would mark events for hours.
        if not self._began_at <= now < self._ends_at:
            self._began_at = now
            self._ends_at = now + MINUTE
            self.events = 0
        self.events = events = self.events + 1
        return events


class FloodCounter:
    """Counts the events of every address in this process; a bound of zero turns it off."""

    def __init__(self, events_per_minute_max: int, *, addresses_max: int = ADDRESSES_MAX) -> None:
        self._events_max = events_per_minute_max
        self._addresses_max = addresses_max
        self._minutes: OrderedDict[bytes, AddressMinute] = OrderedDict()
        self._wider: dict[bytes, int] = {}
        self._wider_since = datetime.min.replace(tzinfo=UTC)

    def __len__(self) -> int:
        return len(self._minutes)

    def count_event(self, address: bytes, now: datetime) -> bool:
        """Count an event of an address, and return whether it exceeds the bound of its minute."""
        if not self._events_max:
            return False
        minute = self._minutes.get(address)
        if minute is None:
            minute = self._begin(address, now)
        else:
            self._minutes.move_to_end(address)
        is_flood = minute.count_event(now) > self._events_max
        return self._count_wider(address, now) or is_flood if len(address) == IPV6_COUNTED_BYTES else is_flood

    def _begin(self, address: bytes, now: datetime) -> AddressMinute:
        self._minutes[address] = minute = AddressMinute(now)
        if len(self._minutes) > self._addresses_max:
            self._minutes.popitem(last=False)
        return minute

    def _count_wider(self, address: bytes, now: datetime) -> bool:
        """Count an event for the networks around an IPv6 network; one minute for all of them, because it is cheaper."""
        wider = self._wider
        if not NO_TIME <= now - self._wider_since < MINUTE or len(wider) > self._addresses_max:
            wider.clear()
            self._wider_since = now
        is_flood = False
        for size, factor in IPV6_WIDER:
            network = address[:size]
            wider[network] = events = wider.get(network, 0) + 1
            is_flood |= events > self._events_max * factor
        return is_flood
