"""Whom a reader has seen often enough: looked up only where it matters, for all who ask at the same time at once.

While one look-up is under way, or was begun a moment ago, those who come wait for the next, which is for
all of them: so there are few of them however many ask. One that fails or takes too long is not repeated
for a while; until then the answer is what the operator has decided for that.
"""

import asyncio
import operator
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

import msgspec
import structlog
from uuid_utils import UUID  # Written thousands of times at once: five times as fast as Python's.

from adloom.core.clock import Clock
from adloom.events.frequency.counts import USERS_MAX, BannerFrequency, FrequencyQuery, MinimumCounts
from adloom.events.frequency.windows import Window
from adloom.runtime.http.fast.tick_batch import TOGETHER_MAX
from adloom.serving.auction.decide import NO_KEYS
from adloom.serving.auction.request import NO_USER_TEXT
from adloom.serving.index.bid_block import BidBlock
from adloom.serving.index.index import Index, IndexedPlacement, MarketPlacements

LOOK_SECONDS_MAX: Final = 0.25
APART_SECONDS: Final = 0.002  # From the beginning of a look-up to that of the next.
AWAY_SECONDS: Final = 1.0  # After a look-up that failed, before the next is tried.

BannerKeys = frozenset[int]

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class SeenBanners(NamedTuple):
    """The banners that a reader has seen often enough; of others it is known only where `is_all` says so."""

    enough: BannerKeys = NO_KEYS
    is_all: bool = False
    unseen: tuple[str, ...] = ()  # Looked up and not seen often enough, where those are not all.
    is_unknown: bool = False  # Nobody knows how often those in `enough` were seen, and they are withheld.


NOTHING_KNOWN: Final = SeenBanners()
NOTHING_SEEN: Final = SeenBanners(is_all=True)


class LookupWaiter(Protocol):
    """Who waits to know what a reader has seen."""

    def know(self, seen: SeenBanners) -> None:
        """Take what the reader has seen, and work out what follows from it; this must not raise."""
        ...

    def tell(self) -> None:
        """Tell what followed, now that all who were looked up together know."""
        ...


class CappedAds(StrEnum):
    """What becomes of ads with a cap when it is not known how often they were seen."""

    OFFER = "offer"
    WITHHOLD = "withhold"


class FrequencyCounts(Protocol):
    """Where it is counted what users have seen."""

    async def read(
        self, asked: Sequence[FrequencyQuery], least: MinimumCounts, now: datetime, /
    ) -> Mapping[int, Sequence[BannerFrequency]]:
        """Tell what users were shown at least so often in some windows, by their place in what is asked.

        Who has seen none of the banners that are asked about so often is missing. UnavailableError where it is not known.
        """
        ...


Limits = dict[str, tuple[int, int]]  # By banners' ids as texts: how often, and their keys.
NO_LIMITS: Final[Limits] = {}


class CappedBanners(msgspec.Struct, frozen=True, eq=False):
    """The banners of a market that one reader may see only so often."""

    caps: Mapping[Window, Limits]
    least: MinimumCounts  # By window, the smallest of their caps.
    all_of_them: SeenBanners  # As withheld.

    def find_seen(self, shown: Sequence[BannerFrequency]) -> SeenBanners:
        """Tell which of them a reader has seen often enough."""
        found: set[int] = set()
        for window, banner, times in shown:
            limit = self.caps.get(window, NO_LIMITS).get(banner)
            if limit is not None and times >= limit[0]:
                found.add(limit[1])
        return SeenBanners(frozenset(found), is_all=True) if found else NOTHING_SEEN

    def withhold_all_but(self, unseen: Sequence[str]) -> SeenBanners:
        """Withhold all of them but those that were looked up and not seen often enough."""
        if not unseen:
            return self.all_of_them
        known = {limits[one][1] for limits in self.caps.values() for one in unseen if one in limits}
        return self.all_of_them._replace(enough=self.all_of_them.enough - known)


class CappedBannerCache:
    """The capped banners of the markets of one index; what a placement has is found out once."""

    def __init__(self) -> None:
        self._index: Index | None = None
        self._placements: dict[int, tuple[IndexedPlacement, Mapping[Window, Limits]]] = {}
        self._markets: dict[
            int, tuple[MarketPlacements, CappedBanners]
        ] = {}  # By the first placement of each.

    def get(self, market: MarketPlacements, index: Index) -> CappedBanners:
        """Give those of a market."""
        if index is not self._index:
            self._tidy(index)
        key = ~market[0].key if len(market) == 1 else market[0].key
        known = self._markets.get(key)
        if known is not None and (known[0] is market or _is_same(known[0], market)):
            return known[1]
        caps: dict[Window, Limits] = {}
        for placement in market:
            for window, limits in self._of_placement(placement).items():
                caps.setdefault(window, {}).update(limits)
        banners = CappedBanners(
            caps,
            {window: min(times for times, _ in limits.values()) for window, limits in caps.items()},
            SeenBanners(
                frozenset(key for limits in caps.values() for _, key in limits.values()),
                is_all=True,
                is_unknown=True,
            ),
        )
        self._markets[key] = market, banners
        return banners

    def _tidy(self, index: Index) -> None:
        """Forget what another index does not have any more."""
        self._index = index
        by_key = index.by_key
        self._placements = {
            key: known for key, known in self._placements.items() if by_key.get(key) is known[0]
        }
        self._markets = {
            key: (market, banners)
            for key, (market, banners) in self._markets.items()
            if index.markets.get(market[0].type) is market
            or (len(market) == 1 and by_key.get(market[0].key) is market[0])
        }

    def _of_placement(self, placement: IndexedPlacement) -> Mapping[Window, Limits]:
        known = self._placements.get(placement.key)
        if known is None or known[0] is not placement:
            known = self._placements[placement.key] = placement, _limits_of(placement)
        return known[1]


def _limits_of(placement: IndexedPlacement) -> dict[Window, Limits]:
    limits: dict[Window, Limits] = {}
    for block in placement.blocks:
        if isinstance(block, BidBlock) and block.capped:
            for one in block.bidders:
                if one.frequency:
                    banner = str(UUID(bytes=one.pair[:16]))
                    for cap in one.frequency:
                        limits.setdefault(cap.window, {})[banner] = cap.impressions_max, one.banner_key
    return limits


class FrequencyLookup:
    """Looks up who has been seen often enough; what is counted is known to the last second."""

    def __init__(
        self,
        counts: FrequencyCounts,
        clock: Clock,
        *,
        when_away: CappedAds = CappedAds.WITHHOLD,
        without_user: CappedAds = CappedAds.WITHHOLD,
    ) -> None:
        self._counts = counts
        self._now = clock.now
        self._when_away = when_away
        self._without_user = without_user
        self._waiting: list[tuple[FrequencyQuery, CappedBanners, LookupWaiter]] = []
        self._task: asyncio.Task[None] | None = None
        self._away_until = 0.0
        self._next_at = 0.0
        # Plain counters, read by a collector.
        self.asked = 0
        self.looked_up = 0  # Round trips, each for many.
        self.failures = 0
        self.offered_unknown = 0  # What was seen was not known, and capped ads took part.
        self.withheld_unknown = 0

    def look_up(
        self, asked: FrequencyQuery, banners: CappedBanners, asker: LookupWaiter
    ) -> SeenBanners | None:
        """Tell which banners take no part; None where it has to be looked up: then who asked hears of it."""
        if asked[0] == NO_USER_TEXT:
            return self._unknown(self._without_user, banners)
        if self._is_away():
            return self._unknown(self._when_away, banners)
        self.asked += 1
        self._waiting.append((asked, banners, asker))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look_on(), name="frequency-look")
        return None

    def decide_unknown(self, banners: CappedBanners, unseen: Sequence[str]) -> SeenBanners:
        """Tell which banners take no part where others matter now than were looked up: nobody waits twice."""
        return self._unknown(self._when_away, banners, unseen)

    def _is_away(self) -> bool:
        return self._away_until > 0.0 and asyncio.get_running_loop().time() < self._away_until

    async def _look_on(self) -> None:
        """Answer all who wait, until nobody does."""
        try:
            while self._waiting:
                await self._gather()
                asking, self._waiting = self._waiting[:USERS_MAX], self._waiting[USERS_MAX:]
                await self._look(asking)
        finally:
            self._task = None

    async def _gather(self) -> None:
        """Let more come, unless the last look-up was long ago: a look-up costs the same for one as for many."""
        if self._is_away():
            await asyncio.sleep(0)  # Those who came during a look-up that failed wait for nothing else.
            return
        now = asyncio.get_running_loop().time()
        if now < self._next_at and len(self._waiting) < USERS_MAX:
            await asyncio.sleep(self._next_at - now)
            now = self._next_at
        self._next_at = now + APART_SECONDS

    async def _look(self, asking: Sequence[tuple[FrequencyQuery, CappedBanners, LookupWaiter]]) -> None:
        found = None if self._is_away() else await self._found(asking)
        # They are worked out together, and then told, as those who come in one turn of the loop are.
        for start in range(0, len(asking), TOGETHER_MAX):
            some = asking[start : start + TOGETHER_MAX]
            for place, (asked, banners, asker) in enumerate(some, start):
                if found is None:
                    asker.know(self._unknown(self._when_away, banners))
                elif (shown := found.get(place)) is not None:
                    asker.know(banners.find_seen(shown))
                else:
                    asker.know(NOTHING_SEEN if len(asked) == 1 else NOTHING_KNOWN)
            for _, _, asker in some:
                try:
                    asker.tell()
                except Exception:  # Whatever is wrong with one of them, others wait too.
                    log.exception("frequency_not_told")

    async def _found(
        self, asking: Sequence[tuple[FrequencyQuery, CappedBanners, LookupWaiter]]
    ) -> Mapping[int, Sequence[BannerFrequency]] | None:
        """Look up what all of them want to know; None where that cannot be."""
        asked_of = {id(banners): banners for _, banners, _ in asking}
        least = _least_of(caps for banners in asked_of.values() for caps in banners.least.items())
        self.looked_up += 1
        try:
            async with asyncio.timeout(LOOK_SECONDS_MAX):
                found = await self._counts.read([asked for asked, _, _ in asking], least, self._now())
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for ever
            self.failures += 1
            self._away_until = asyncio.get_running_loop().time() + AWAY_SECONDS
            log.warning("frequency_away", requests=len(asking), error=repr(error))
            return None
        self._away_until = 0.0
        return found

    def _unknown(self, decided: CappedAds, banners: CappedBanners, unseen: Sequence[str] = ()) -> SeenBanners:
        if decided is CappedAds.OFFER:
            self.offered_unknown += 1
            return NOTHING_SEEN
        self.withheld_unknown += 1
        return banners.withhold_all_but(unseen)


def _least_of(caps: Iterable[tuple[Window, int]]) -> MinimumCounts:
    least: dict[Window, int] = {}
    for window, times in caps:
        least[window] = min(times, least.get(window, times))
    return least


def _is_same(one: MarketPlacements, other: MarketPlacements) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))
