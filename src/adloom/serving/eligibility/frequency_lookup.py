"""Batched frequency-cap look-ups: one Valkey round trip serves all concurrent requests whose result depends on it.

Requests that come while a look-up is under way, or shortly after it began, wait for the next one together. After
a look-up that fails or takes too long, look-ups pause; meanwhile the operator's setting decides.
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
from adloom.core.ids import NO_USER
from adloom.events.frequency.counts import USERS_MAX, BannerFrequency, FrequencyQuery, MinimumCounts
from adloom.events.frequency.windows import Window
from adloom.runtime.http.fast.tick_batch import TOGETHER_MAX
from adloom.serving.index.bid_block import BidBlock
from adloom.serving.index.index import Index, IndexedPlacement, MarketPlacements

LOOKUP_SECONDS_MAX: Final = 0.25
APART_SECONDS: Final = 0.002  # From the start of a look-up to the start of the next.
AWAY_SECONDS: Final = 1.0  # After a look-up that failed, before the next is tried.

BannerKeys = frozenset[int]
NO_BANNERS: Final[BannerKeys] = frozenset()
_NO_USER: Final = str(NO_USER)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class SeenBanners(NamedTuple):
    """The banners that a visitor has seen often enough; other banners are known only if `is_all`."""

    enough: BannerKeys = NO_BANNERS
    is_all: bool = False
    unseen: tuple[str, ...] = ()  # Looked up and not seen often enough, if not all were looked up.
    is_unknown: bool = False  # The counts of those in `enough` are unknown, so they are withheld.


NOTHING_KNOWN: Final = SeenBanners()
NOTHING_SEEN: Final = SeenBanners(is_all=True)


class LookupWaiter(Protocol):
    """A request that waits to know what its visitor has seen."""

    def work_out(self, seen: SeenBanners) -> None:
        """Work out the answer; must not raise."""
        ...

    def send(self) -> None:
        """Send the answer, after all answers of a batch are worked out."""
        ...


class CappedAds(StrEnum):
    """What happens to capped ads when it is unknown how often they were seen."""

    OFFER = "offer"
    WITHHOLD = "withhold"


class FrequencyCounts(Protocol):
    """Where it is counted what users have seen."""

    async def read(
        self, asked: Sequence[FrequencyQuery], least: MinimumCounts, now: datetime, /
    ) -> Mapping[int, Sequence[BannerFrequency]]:
        """Return what users were shown at least so often in some windows, by their position in what is asked.

        Users who have seen none of the banners so often are missing. UnavailableError if it is unknown.
        """
        ...


Limits = dict[str, tuple[int, int]]  # By banner id as text: how often, and the banner's key.
NO_LIMITS: Final[Limits] = {}


class CappedBanners(msgspec.Struct, frozen=True, eq=False):
    """The frequency-capped banners of a market."""

    caps: Mapping[Window, Limits]
    least: MinimumCounts  # By window, the smallest cap.
    all_of_them: SeenBanners  # Withheld.

    def find_seen(self, shown: Sequence[BannerFrequency]) -> SeenBanners:
        found: set[int] = set()
        for window, banner, times in shown:
            limit = self.caps.get(window, NO_LIMITS).get(banner)
            if limit is not None and times >= limit[0]:
                found.add(limit[1])
        return SeenBanners(frozenset(found), is_all=True) if found else NOTHING_SEEN

    def withhold_all_but(self, unseen: Sequence[str]) -> SeenBanners:
        """Withhold all but those that were looked up and not seen often enough."""
        if not unseen:
            return self.all_of_them
        known = {limits[one][1] for limits in self.caps.values() for one in unseen if one in limits}
        return self.all_of_them._replace(enough=self.all_of_them.enough - known)


class CappedBannerCache:
    """The capped banners of the markets of one index, cached by placement."""

    def __init__(self) -> None:
        self._index: Index | None = None
        self._placements: dict[int, tuple[IndexedPlacement, Mapping[Window, Limits]]] = {}
        self._markets: dict[
            int, tuple[MarketPlacements, CappedBanners]
        ] = {}  # By the first placement of each.

    def get(self, market: MarketPlacements, index: Index) -> CappedBanners:
        if index is not self._index:
            self._drop_stale(index)
        key = ~market[0].key if len(market) == 1 else market[0].key
        known = self._markets.get(key)
        if known is not None and (known[0] is market or _are_same(known[0], market)):
            return known[1]
        caps: dict[Window, Limits] = {}
        for placement in market:
            for window, limits in self._list_placement_limits(placement).items():
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

    def _drop_stale(self, index: Index) -> None:
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

    def _list_placement_limits(self, placement: IndexedPlacement) -> Mapping[Window, Limits]:
        known = self._placements.get(placement.key)
        if known is None or known[0] is not placement:
            known = self._placements[placement.key] = placement, _collect_limits(placement)
        return known[1]


def _collect_limits(placement: IndexedPlacement) -> dict[Window, Limits]:
    limits: dict[Window, Limits] = {}
    for block in placement.blocks if placement.has_frequency else ():
        # Of a block of bids it is known whether one has a cap.
        if not isinstance(block, BidBlock) or block.capped:
            for one in block.candidates:
                if one.frequency:
                    banner = str(UUID(bytes=one.pair[:16]))
                    for cap in one.frequency:
                        limits.setdefault(cap.window, {})[banner] = cap.impressions_max, one.banner_key
    return limits


class FrequencyLookup:
    """Looks up which banners a visitor has seen often enough; counts are at most a second old."""

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
        self.looked_up = 0  # Round trips, each for many requests.
        self.failures = 0
        self.offered_unknown = 0  # It was unknown what was seen, and capped ads took part.
        self.withheld_unknown = 0

    def look_up(
        self, asked: FrequencyQuery, banners: CappedBanners, waiter: LookupWaiter
    ) -> SeenBanners | None:
        """Return the banners that take no part; None if they have to be looked up: then `waiter` is called later."""
        if asked[0] == _NO_USER:
            return self.decide_anonymous(banners)
        if self._is_away():
            return self._resolve_unknown(self._when_away, banners)
        self.asked += 1
        self._waiting.append((asked, banners, waiter))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="frequency-look")
        return None

    def decide_unknown(self, banners: CappedBanners, unseen: Sequence[str]) -> SeenBanners:
        """Decide about capped banners that were not looked up: a request waits only once."""
        return self._resolve_unknown(self._when_away, banners, unseen)

    def decide_anonymous(self, banners: CappedBanners) -> SeenBanners:
        """Decide about capped banners for a visitor without an id."""
        return self._resolve_unknown(self._without_user, banners)

    def _is_away(self) -> bool:
        return self._away_until > 0.0 and asyncio.get_running_loop().time() < self._away_until

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._collect()
                waiting, self._waiting = self._waiting[:USERS_MAX], self._waiting[USERS_MAX:]
                await self._answer(waiting)
        finally:
            self._task = None

    async def _collect(self) -> None:
        """Let more requests come, unless the last look-up was long ago: a look-up for many costs the same as for one."""
        if self._is_away():
            await asyncio.sleep(0)  # Requests that came during a failed look-up are answered at once.
            return
        now = asyncio.get_running_loop().time()
        if now < self._next_at and len(self._waiting) < USERS_MAX:
            await asyncio.sleep(self._next_at - now)
            now = self._next_at
        self._next_at = now + APART_SECONDS

    async def _answer(self, waiting: Sequence[tuple[FrequencyQuery, CappedBanners, LookupWaiter]]) -> None:
        found = None if self._is_away() else await self._read_counts(waiting)
        # Work out a batch, then send it, as for requests that come in one tick of the loop.
        for start in range(0, len(waiting), TOGETHER_MAX):
            some = waiting[start : start + TOGETHER_MAX]
            for place, (asked, banners, waiter) in enumerate(some, start):
                if found is None:
                    waiter.work_out(self._resolve_unknown(self._when_away, banners))
                elif (shown := found.get(place)) is not None:
                    waiter.work_out(banners.find_seen(shown))
                else:
                    waiter.work_out(NOTHING_SEEN if len(asked) == 1 else NOTHING_KNOWN)
            for _, _, waiter in some:
                try:
                    waiter.send()
                except Exception:  # The others still wait.
                    log.exception("frequency_not_told")

    async def _read_counts(
        self, waiting: Sequence[tuple[FrequencyQuery, CappedBanners, LookupWaiter]]
    ) -> Mapping[int, Sequence[BannerFrequency]] | None:
        """Look up all at once; None if that fails."""
        asked_of = {id(banners): banners for _, banners, _ in waiting}
        least = _find_smallest_caps(caps for banners in asked_of.values() for caps in banners.least.items())
        self.looked_up += 1
        try:
            async with asyncio.timeout(LOOKUP_SECONDS_MAX):
                found = await self._counts.read([asked for asked, _, _ in waiting], least, self._now())
        except Exception as error:  # noqa: BLE001 - whatever it is, no request may wait for ever
            self.failures += 1
            self._away_until = asyncio.get_running_loop().time() + AWAY_SECONDS
            log.warning("frequency_away", requests=len(waiting), error=repr(error))
            return None
        self._away_until = 0.0
        return found

    def _resolve_unknown(
        self, decided: CappedAds, banners: CappedBanners, unseen: Sequence[str] = ()
    ) -> SeenBanners:
        if decided is CappedAds.OFFER:
            self.offered_unknown += 1
            return NOTHING_SEEN
        self.withheld_unknown += 1
        return banners.withhold_all_but(unseen)


def _find_smallest_caps(caps: Iterable[tuple[Window, int]]) -> MinimumCounts:
    least: dict[Window, int] = {}
    for window, times in caps:
        least[window] = min(times, least.get(window, times))
    return least


def _are_same(one: MarketPlacements, other: MarketPlacements) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))
