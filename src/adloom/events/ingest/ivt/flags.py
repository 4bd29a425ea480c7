"""What makes traffic doubtful: the sender is a crawler, a prefetch, in a data centre, or sends too much.

No event is refused for it. A doubtful event is counted and marked, and neither billed nor learned from.
"""

# pure

import ipaddress
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from adloom.events.ingest.ivt.minute_counts import IPV6_KEY_BYTES, AddressCount
from adloom.events.log.event import Mark
from adloom.runtime.http.networks import Address, Networks

# We keep only the network of an address, which is no household's, and only where a mark is about it.
IPV4_KEPT_LENGTH: Final = 24
IPV6_KEPT_LENGTH: Final = 48
NETWORKS_CACHED_MAX: Final = 1_024

_AHEAD: Final = re.compile(rb"prefetch|prerender", re.IGNORECASE)

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

    __slots__ = ("events", "offers", "requests")

    def __init__(self) -> None:
        self.requests: Any = None  # Of the rate limit.
        # Paid impressions, paid clicks, and what costs nothing.
        self.events: list[AddressCount | None] = [None, None, None]
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
        None if is_internal else address.packed[:IPV6_KEY_BYTES],
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
