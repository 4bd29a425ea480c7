"""Finds the sender of a request, and marks doubtful traffic.

What is known of an address is cached in memory only, by what it was read from.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

from adloom.events.ingest.ivt.flags import (
    INTERNAL,
    NO_FLAGS,
    UNKNOWN_SENDER,
    UNREADABLE_SENDER,
    Sender,
    TrafficFlags,
    add_header_marks,
    build_flags,
    describe_sender,
    is_prefetch,
)
from adloom.events.ingest.ivt.minute_counts import AddressCount, MinuteCounts
from adloom.events.ingest.ivt.recent_reports import RecentReports
from adloom.events.ingest.token import OfferToken
from adloom.events.log.event import ChargedBy, Mark
from adloom.runtime.http.client_address import find_client
from adloom.runtime.http.fast.fast_routes import FastRequest, index_headers, read_forwarded
from adloom.runtime.http.networks import Address, Network, Networks

MARKS: Final = (Mark.CRAWLER, Mark.PREFETCH, Mark.DATA_CENTER, Mark.ADDRESS_FLOOD)
SENDERS_CACHED_MAX: Final = 16_384  # Of each of two generations: about 6 MB each.
PEER_EVENTS_MIN: Final = 1_000  # Fewer may be a person who tries it out.
FORWARDED_BYTES_CACHED_MAX: Final = 256  # A longer chain is unusual, and parsed each time.

_SEC_PURPOSE: Final = b"sec-purpose"
_PURPOSE: Final = b"purpose"
_X_MOZ: Final = b"x-moz"

_UNPAID: Final = 2
_BY_CLICK: Final = ChargedBy.CLICK  # Looking up a member of an enum calls Python.

SenderKey: TypeAlias = tuple[str | None, bytes | None]


def _find_kind(offer: OfferToken | None, is_click: bool) -> int:  # noqa: FBT001 - on the path of every event, where names would cost
    """Return by which count an event goes: of paid impressions, of paid clicks, or of what costs nothing."""
    if offer is None:
        return int(is_click)
    terms = offer.terms
    is_paid = terms.charge and not offer.is_expired and (terms.charged_by is _BY_CLICK) is is_click
    return int(is_click) if is_paid else _UNPAID


class Detector(Protocol):
    """Flags events by the requests that report them."""

    def identify_sender(self, request: FastRequest, /) -> Sender: ...

    def flag_event(
        self,
        sender: Sender,
        second: float,
        offer: OfferToken,
        is_click: bool,  # noqa: FBT001 - on the path of every event, where names would cost
        /,
    ) -> TrafficFlags:
        """Count an event with a token that has no other flags, once if it is repeated, and return the sender's flags."""
        ...

    def flag_unbound(self, sender: Sender, second: float, /) -> TrafficFlags:
        """Count an event of a sender without a token, apart from those with one, and return its flags."""
        ...


class NullDetector:
    """Flags nothing."""

    def identify_sender(self, request: FastRequest) -> Sender:  # noqa: ARG002 - the protocol's signature
        return UNKNOWN_SENDER

    def flag_event(self, *about: object) -> TrafficFlags:
        del about
        return NO_FLAGS

    def flag_unbound(self, sender: Sender, second: float) -> TrafficFlags:  # noqa: ARG002 - likewise
        return NO_FLAGS


class PeerCounter:
    """Notices that all events come from one address of a private network: then that is a proxy, or a server."""

    def __init__(self) -> None:
        self.others = 0
        self.internal = 0
        self.last: Address | None = None
        self._are_several = False

    @property
    def only_internal(self) -> str | None:
        """The private address that all events came from, if there is only one and there were enough."""
        is_only = not self.others and not self._are_several and self.internal >= PEER_EVENTS_MIN
        return str(self.last) if is_only else None

    def count(self, address: Address | None) -> None:
        """Count an event of an address whose rate is not counted; None where a trusted proxy named no client."""
        if address is None or (address is not self.last and address not in INTERNAL):
            self.others += 1
            return
        self.internal += 1
        if address is not self.last:
            self._are_several |= self.last is not None and address != self.last
            self.last = address


class TrafficDetector:
    """Looks at the headers and the address of every request, and counts the events of each address."""

    def __init__(  # noqa: PLR0913 - a composition root names them all
        self,
        is_crawler: Callable[[bytes], bool],
        *,
        trusted: Sequence[Network] = (),
        data_centers: Networks | None = None,
        impressions: MinuteCounts | None = None,
        clicks: MinuteCounts | None = None,
        unpaid: MinuteCounts | None = None,
        unbound: MinuteCounts | None = None,
    ) -> None:
        self._is_crawler = is_crawler
        self._proxies = Networks(trusted)
        self._has_proxies = bool(self._proxies)
        self._data_centers = data_centers or Networks()
        self._count_report = RecentReports().count
        # Only what is paid itself keeps others of its kind from being billed: a script can report a thousand events
        # that cost nothing in a second, so that what its visitor sees and clicks next is free.
        self._find_counts = [
            (MinuteCounts(0) if counts is None else counts).find for counts in (impressions, clicks, unpaid)
        ]
        # Anybody can send these, so they keep no others from being billed either.
        self._is_unbound_flood = (MinuteCounts(0) if unbound is None else unbound).exceeds
        # By peer and forwarded addresses, in two generations: when the newer one is full, the older is forgotten.
        self._senders: dict[SenderKey, Sender] = {}
        self._older_senders: dict[SenderKey, Sender] = {}
        # Plain counters, read by the metrics.
        self.marked: dict[Mark, int] = dict.fromkeys(MARKS, 0)
        self.peers = PeerCounter()

    def identify_sender(self, request: FastRequest) -> Sender:
        """Identify the sender by the address, the user agent and the headers of purpose; once a request."""
        sender = request.sender
        if sender is None:
            head, forwarded = request.head, None
            if self._has_proxies:
                forwarded = request.forwarded
                if forwarded is None and head is None:  # A head that others share never has them.
                    forwarded = read_forwarded(request)
            key = (request.client, forwarded)
            sender = self._senders.get(key) or self._identify(key)
            if head is None or head.has_marks:
                sender = self._mark_by_headers(request, sender)
            request.sender = sender
        return sender

    def find_rate_key(self, request: FastRequest) -> bytes | None:
        """Return what the requests of a sender are counted by."""
        return self.identify_sender(request).rate_key

    def _identify(self, key: SenderKey) -> Sender:
        """Identify a sender who is not among the newer ones."""
        sender = self._older_senders.get(key) or self._identify_address(*key)
        if key[1] is None or len(key[1]) <= FORWARDED_BYTES_CACHED_MAX:
            if len(self._senders) >= SENDERS_CACHED_MAX:
                self._older_senders, self._senders = self._senders, {}
            self._senders[key] = sender
        return sender

    def _mark_by_headers(self, request: FastRequest, sender: Sender) -> Sender:
        if request.first_values is None:
            request.first_values = index_headers(request.headers)
        values = request.first_values
        is_crawler = self._is_crawler(values.get(b"user-agent", b""))
        if not (is_crawler or _SEC_PURPOSE in values or _PURPOSE in values or _X_MOZ in values):
            if request.head is not None:
                request.head.has_marks = False
            return sender
        purposes = [values.get(name, b"") for name in (_SEC_PURPOSE, _PURPOSE, _X_MOZ)]
        return add_header_marks(sender, is_crawler=is_crawler, is_prefetch=is_prefetch(purposes))

    def flag_event(
        self,
        sender: Sender,
        second: float,
        offer: OfferToken | None = None,
        is_click: bool = False,  # noqa: FBT001, FBT002 - on the path of every event, where names would cost
    ) -> TrafficFlags:
        key = sender.rate_key
        if key is None or sender.marks:
            return self._flag(sender)
        kind, counts = _find_kind(offer, is_click), sender.counts
        count = (counts is not None and counts.events[kind]) or self._find_events(sender, key, kind)
        step = self._count_report(offer, is_click, key) if count.is_frequent and offer is not None else 1
        return self._flag(sender, count.exceeds(second, step))

    def flag_unbound(self, sender: Sender, second: float) -> TrafficFlags:
        key = sender.rate_key
        return self._flag(sender, key is not None and self._is_unbound_flood(key, second))

    def _flag(self, sender: Sender, is_flood: bool = False) -> TrafficFlags:  # noqa: FBT001, FBT002 - on the path of every event
        peers = self.peers
        if sender.rate_key is not None:
            peers.others += 1
        elif peers.last is sender.address is not None:  # As `count` does.
            peers.internal += 1
        else:
            peers.count(sender.address)
        if not (is_flood or sender.marks):
            return NO_FLAGS
        flags = build_flags(sender, is_flood=is_flood)
        for mark in flags.marks:
            self.marked[mark] += 1
        return flags

    def _find_events(self, sender: Sender, key: bytes, kind: int) -> AddressCount:
        count = self._find_counts[kind](key)
        if sender.counts is not None:
            sender.counts.events[kind] = count
        return count

    def _identify_address(self, peer: str | None, forwarded: bytes | None) -> Sender:
        address = find_client(peer, [] if forwarded is None else [forwarded.decode("latin-1")], self._proxies)
        if address is None:
            return UNREADABLE_SENDER if forwarded is not None else UNKNOWN_SENDER
        # A proxy of ours, or a trusted server, that does not say for which client it asks.
        if address in self._proxies:
            return UNKNOWN_SENDER
        return describe_sender(address, data_centers=self._data_centers)
