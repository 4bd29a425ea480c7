"""Which offers were confirmed lately: the fast path before the money ledger, which is the judge.

Two memories, each complete from some second on: a cache of exact keys for minutes, and Bloom filters
beyond. An offer that was made after that second, and that a memory does not know, is certainly new. Of
all others the answer is that they may have been seen: whoever started a moment ago has seen nothing, and
a filter that is full is put aside for a new one, instead of taking ever more new offers for old ones.

The second of an offer is by the clock of its process. Should one be further ahead than we allow for, an
old offer can be taken for a new one: the money ledger refuses it then, and the next time it is known.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

OFFERS_MAX: Final = 50_000  # In the cache, and in a filter.
ERROR_RATE: Final = 0.0001  # Of a filter.
CACHE_LIFE: Final = timedelta(minutes=5)
AHEAD_SECONDS_MAX: Final = 2  # A process's clock, of ours.

Offer: TypeAlias = tuple[Hashable, int]  # Request id, which is told apart faster as a number, and slot.


class Novelty(StrEnum):
    """What is known of an offer without asking the money ledger."""

    CERTAINLY_NEW = "certainly_new"
    MAYBE_SEEN = "maybe_seen"


class Filter(Protocol):
    """A Bloom filter: it may take a new key for an old one, and never an old one for a new one."""

    def add(self, key: Offer, /) -> None:
        """Remember a key."""
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
        self._filter = self._older = new_filter(offers_max, ERROR_RATE)
        self._in_filter = 0
        # From which second on each memory knows all offers: those of a second before may be missing.
        self._filter_since = self._older_since = self._cache_since = _complete_after(now)
        self._cache: OrderedDict[Offer, datetime] = OrderedDict()
        self._forget_at = now + CACHE_LIFE  # Nothing in the cache is too old before.

    def __len__(self) -> int:
        """Tell how many offers the cache knows."""
        return len(self._cache)

    def judge(self, offer: Offer, *, second: int, now: datetime) -> Novelty:
        """Tell whether an offer of a second can have been confirmed before; asking keeps it in the cache."""
        self._forget(now)
        if offer in self._cache:
            self._cache[offer] = now
            self._cache.move_to_end(offer)
            return Novelty.MAYBE_SEEN
        if second >= self._cache_since:
            return Novelty.CERTAINLY_NEW
        is_known = second < self._older_since or offer in self._filter or offer in self._older
        return Novelty.MAYBE_SEEN if is_known else Novelty.CERTAINLY_NEW

    def note(self, offer: Offer, *, now: datetime) -> None:
        """Remember that an offer is confirmed, as soon as it is sent on its way."""
        if self._in_filter >= self._offers_max:
            self._older, self._older_since = self._filter, self._filter_since
            self._filter, self._in_filter = self._new_filter(self._offers_max, ERROR_RATE), 0
            self._filter_since = _complete_after(now)
        self._filter.add(offer)
        self._in_filter += 1
        self._cache[offer] = now
        self._cache.move_to_end(offer)
        self._forget(now)

    def _forget(self, now: datetime) -> None:
        """Drop from the cache what was not asked for lately, and what is too much."""
        if now < self._forget_at and len(self._cache) <= self._offers_max:
            return
        self._forget_at = now + CACHE_LIFE
        while self._cache:
            offer, at = next(iter(self._cache.items()))
            if at + CACHE_LIFE > now and len(self._cache) <= self._offers_max:
                self._forget_at = at + CACHE_LIFE
                return
            del self._cache[offer]
            self._cache_since = max(self._cache_since, _complete_after(at))


def _complete_after(moment: datetime) -> int:
    """Tell from which second on no offer can have been confirmed by a moment: it has to be made first."""
    return int(moment.timestamp()) + 1 + AHEAD_SECONDS_MAX
