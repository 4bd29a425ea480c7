"""Which offers were confirmed lately: the fast path before the money ledger, which is the judge.

Two memories, each complete from some second on: a cache of exact keys for minutes, and Bloom filters
beyond. An offer that was made after that second, and that a memory does not know, is certainly new. Of
all others the answer is that they may have been seen: whoever started a moment ago has seen nothing, and
a filter that is full is put aside for a new one, instead of taking ever more new offers for old ones. Of those
put aside the newest are kept, and only those are looked into that were in use since the offer was made.

The second of an offer is by the clock of its process. Should one be further ahead than we allow for, an
old offer can be taken for a new one: the money ledger refuses it then, and the next time it is known.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, Protocol, TypeAlias

OFFERS_MAX: Final = 50_000  # In the cache, and in a filter.
ERROR_RATE: Final = 0.0001  # Of a filter.
FILTERS_MAX: Final = 8  # 40 seconds of 10,000 offers each, in 16 MB.
CACHE_LIFE: Final = timedelta(minutes=5)
AHEAD_SECONDS_MAX: Final = 2  # A process's clock, of ours.

# An offer: its request, as the number that its id is, and which of the request's slots.
Offer: TypeAlias = tuple[int, int]


class Filter(Protocol):
    """A Bloom filter: it may take a new key for an old one, and never an old one for a new one."""

    def update(self, keys: Iterable[Offer], /) -> None:
        """Remember keys."""
        ...

    def __contains__(self, key: object, /) -> bool:
        """Tell whether a key may have been added."""
        ...


class SeenOffers:
    """What one owner of the charges has confirmed since it began."""

    def __init__(
        self, new_filter: Callable[[int, float], Filter], *, now: datetime, offers_max: int = OFFERS_MAX
    ) -> None:
        self._new_filter = new_filter
        self._offers_max = offers_max
        # From which second on each memory knows all offers: those of a second before may be missing.
        self._cache_since = _first_complete_second(now)
        self._filters: deque[tuple[int, Filter]] = deque(maxlen=FILTERS_MAX)  # The newest is first.
        self._in_filter = 0
        self._begin_filter(now)
        self._cache: OrderedDict[Offer, datetime] = OrderedDict()

    def __len__(self) -> int:
        """Tell how many offers the cache knows."""
        return len(self._cache)

    def find_maybe_seen(self, offers: Mapping[Offer, int], *, now: datetime) -> set[Offer]:
        """Tell which offers, each of a second, can have been confirmed before; asking keeps them in the cache."""
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
        """Remember that offers are confirmed, as soon as they are sent on their way."""
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
        self._filters.appendleft(
            (_first_complete_second(now), self._new_filter(self._offers_max, ERROR_RATE))
        )
        self._in_filter = 0

    def _may_be_in_a_filter(self, offer: Offer, second: int) -> bool:
        for since, offers in self._filters:
            if offer in offers:
                return True
            if second >= since:
                return False  # Whatever was confirmed before, this was not made yet.
        return True

    def _evict(self, now: datetime) -> None:
        """Drop from the cache what was not asked for lately, and what is too much."""
        cache = self._cache
        last: datetime | None = None
        surplus = len(cache) - self._offers_max
        while cache and (surplus > 0 or next(iter(cache.values())) + CACHE_LIFE <= now):
            _, at = cache.popitem(last=False)
            surplus -= 1
            if at is not last:  # Those that were noted together are of one moment.
                last = at
                self._cache_since = max(self._cache_since, _first_complete_second(at))


def _first_complete_second(moment: datetime) -> int:
    """Tell from which second on no offer can have been confirmed by a moment: it has to be made first."""
    return int(moment.timestamp()) + 1 + AHEAD_SECONDS_MAX
