"""Which events cost money, and which offers were confirmed recently: a fast check before the money ledger, which decides.

Two memories, each complete from some second on: a cache of exact keys for minutes, and Bloom filters
beyond. An offer made after that second that a memory does not know is certainly new. Any other offer
may have been seen: a process that just started has seen nothing. A full filter is put aside for a new
one, so that its error rate stays low. The newest of those are kept, and only those are asked that were
in use since the offer was made.

The second of an offer is by the clock of its process. If that clock is further ahead than we allow for,
an old offer can pass as new: then the money ledger refuses it, and it is known the next time.
"""

# pure

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, Protocol, TypeAlias

from adloom.budgets.messages import COUNTED_LEASE, ChargeKind, Confirm
from adloom.events.followers.counted import CountedEntry
from adloom.events.log.event import EVENTS, Event, Impression, LogEvent

OFFERS_MAX: Final = 50_000  # In the cache, and in a filter.
ERROR_RATE: Final = 0.0001  # Of a filter.
FILTERS_MAX: Final = 8  # 40 seconds of 10,000 offers each, in 16 MB.
CACHE_LIFE: Final = timedelta(minutes=5)
AHEAD_SECONDS_MAX: Final = 2  # A process's clock, of ours.

# An offer: its request, as the number that its id is, and which of the request's slots.
Offer: TypeAlias = tuple[int, int]


class OfferFilter(Protocol):
    """A Bloom filter: it may take a new key for an old one, and never an old one for a new one."""

    def update(self, keys: Iterable[Offer], /) -> None: ...

    def __contains__(self, key: object, /) -> bool: ...


class SeenOffers:
    """What one owner of the charges has confirmed since it began."""

    def __init__(
        self, new_filter: Callable[[int, float], OfferFilter], *, now: datetime, offers_max: int = OFFERS_MAX
    ) -> None:
        self._new_filter = new_filter
        self._offers_max = offers_max
        # From which second on each memory knows all offers: those of a second before may be missing.
        self._cache_since = _find_complete_second(now)
        self._filters: deque[tuple[int, OfferFilter]] = deque(maxlen=FILTERS_MAX)  # The newest is first.
        self._in_filter = 0
        self._begin_filter(now)
        self._cache: OrderedDict[Offer, datetime] = OrderedDict()

    def __len__(self) -> int:
        return len(self._cache)

    def find_maybe_seen(self, offers: Mapping[Offer, int], *, now: datetime) -> set[Offer]:
        """Return the offers that may have been confirmed before; each comes with its second. Asking keeps them cached."""
        self._evict(now)
        cache, since, found = self._cache, self._cache_since, set[Offer]()
        for offer, second in offers.items():
            if offer in cache:
                cache[offer] = now
                cache.move_to_end(offer)
                found.add(offer)
            elif second < since and self._may_be_in_a_filter(offer, second):
                found.add(offer)
        return found

    def note(self, offers: Collection[Offer], *, now: datetime) -> None:
        """Remember offers as confirmed once they are on their way."""
        left = iter(offers)
        while part := list(islice(left, self._offers_max - self._in_filter)):
            self._filters[0][1].update(part)
            self._in_filter += len(part)
            if self._in_filter >= self._offers_max:
                self._begin_filter(now)
        cache = self._cache
        for offer in offers:
            cache[offer] = now
            cache.move_to_end(offer)
        self._evict(now)

    def _begin_filter(self, now: datetime) -> None:
        self._filters.appendleft((_find_complete_second(now), self._new_filter(self._offers_max, ERROR_RATE)))
        self._in_filter = 0

    def _may_be_in_a_filter(self, offer: Offer, second: int) -> bool:
        for since, offers in self._filters:
            if offer in offers:
                return True
            if second >= since:
                return False  # It was made after all that the older filters have was confirmed.
        return True

    def _evict(self, now: datetime) -> None:
        """Drop what was not asked for recently, and what is too much."""
        cache = self._cache
        last: datetime | None = None
        surplus = len(cache) - self._offers_max
        while cache and (surplus > 0 or next(iter(cache.values())) + CACHE_LIFE <= now):
            _, at = cache.popitem(last=False)
            surplus -= 1
            if at is not last:  # Those that were noted together are of one moment.
                last = at
                self._cache_since = max(self._cache_since, _find_complete_second(at))


def _find_complete_second(moment: datetime) -> int:
    """Return the first second whose offers cannot have been confirmed by a moment."""
    return int(moment.timestamp()) + 1 + AHEAD_SECONDS_MAX


# Looked up once: looking up a member of an enumeration costs more than comparing it.
_IMPRESSION: Final = ChargeKind.IMPRESSION
_CLICK: Final = ChargeKind.CLICK


def may_cost(happening: LogEvent) -> bool:
    """Whether an event belongs to an offer with a price, whatever confirms it, or to one that counts against a cap."""
    return (
        isinstance(happening, EVENTS)
        and (happening.charge > 0 or happening.lease & COUNTED_LEASE > 0)
        and happening.request_id is not None
        and happening.slot is not None
        and happening.campaign_id is not None
    )


def build_confirm(counted: CountedEntry) -> Confirm | None:
    """Return what a counted event may confirm: None if it confirms nothing.

    An offer that is charged by its click may be confirmed with either event: the click counts when both are there.
    """
    event = counted.event
    if not isinstance(event, EVENTS) or not event.charge:
        return None
    is_impression = isinstance(event, Impression)
    if event.charged_by == _CLICK:
        return _build_confirm(event, _CLICK) if is_impression or counted.is_valid else None
    return _build_confirm(event, _IMPRESSION) if is_impression and counted.is_valid else None


def find_capped_impression(counted: CountedEntry) -> tuple[int, int, str] | None:
    """Return the lease, second and entry of an impression whose offer counts against a cap."""
    event = counted.event
    if not isinstance(event, Impression) or not counted.is_valid or not event.lease & COUNTED_LEASE:
        return None
    return event.lease & ~COUNTED_LEASE, event.offered_at, counted.entry_id


def _build_confirm(event: Event, kind: ChargeKind) -> Confirm:
    assert event.request_id is not None
    assert event.slot is not None
    return Confirm(
        request_id=event.request_id,
        slot=event.slot,
        kind=kind,
        lease=event.lease & ~COUNTED_LEASE,
        second=event.offered_at,
        amount=event.charge,
        banner_id=event.banner_id,
        placement_id=event.placement_id,
        occurred_at=event.occurred_at,
    )
