"""The cost of an auction in this process, from the request's context to the winner and its price."""

import gc
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random  # noqa: TID251 - seeded, and of the bench alone
from typing import Final

import msgspec

from adloom.auction.features import SLOTS
from adloom.auction.learned import KINDS_MAX, LearnedScoring, VisitorKind
from adloom.auction.model import Model
from adloom.auction.score import HEURISTIC, Signals
from adloom.core.clock import SystemClock
from adloom.serving.auction.decide import WinningBid
from adloom.serving.auction.market import Market, Markets
from adloom.serving.auction.record.funnel import build_funnel
from adloom.serving.background.model_loader import RANKED_MAX
from adloom.serving.eligibility.exclusions import Exclusions
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import Index
from adloom.serving.index.steps import run_steps
from adloom.targeting.context import Context
from bench.auction.catalog import TYPES, build_auction_catalog, build_requests, choose_half
from bench.processes import measure_usage
from bench.scale.catalog import SEED

REQUESTS: Final = 2_000
LISTED: Final = 200  # For so many requests all bids are listed.
REPEATS: Final = 15  # The best time of each request counts: the rest is noise of other processes.


class Spread(msgspec.Struct, frozen=True):
    """The time per request, in µs."""

    mean: float
    p99: float


class AuctionCost(msgspec.Struct, frozen=True, kw_only=True):
    """The costs of one size."""

    campaigns: int
    compile_seconds: float
    head_millis: float  # To merge the highest bids of all markets.
    ranking_seconds: float  # To rank all bids by learned CTRs.
    won_share: float
    bids_mean: float  # Bids that took part.
    by_type: Spread  # Over all placements of a type, the usual request.
    by_slug: Spread  # On one placement.
    learned_by_type: Spread  # With CTRs that differ by ad.
    learned_by_slug: Spread
    listed_by_type: Spread  # To list the highest 256 bids and count the others, for the record.
    listed_by_slug: Spread


# As in `bench.scoring` after 300,000 impressions of 800 banners.
WEIGHTS_SPREAD: Final = 0.15
HIGHEST: Final = 2.4
CROSSING: Final = 0.8

MarketRequest = tuple[Market, Context, Signals]
Work = Callable[[Market, Context, Signals], object]


def measure_costs(sizes: Sequence[int]) -> list[AuctionCost]:
    """Measure all sizes in rotation, so that other load on the machine affects all alike."""
    benches = [AuctionBench(size) for size in sizes]
    gc.collect()
    gc.freeze()
    by_type = _measure_spreads([(bench.run_auction, bench.by_type) for bench in benches])
    by_slug = _measure_spreads([(bench.run_auction, bench.by_slug) for bench in benches])
    learned_by_type = _measure_spreads([(bench.run_learned_auction, bench.by_type) for bench in benches])
    learned_by_slug = _measure_spreads([(bench.run_learned_auction, bench.by_slug) for bench in benches])
    listed_by_type = _measure_spreads([(bench.count_bids, bench.by_type[:LISTED]) for bench in benches])
    listed_by_slug = _measure_spreads([(bench.count_bids, bench.by_slug[:LISTED]) for bench in benches])
    return [
        AuctionCost(
            campaigns=bench.campaigns,
            compile_seconds=bench.compile_seconds,
            head_millis=bench.head_millis,
            ranking_seconds=bench.ranking_seconds,
            won_share=sum(bench.run_auction(*asked) is not None for asked in bench.by_type) / REQUESTS,
            bids_mean=sum(bench.count_bids(*asked) for asked in bench.by_type[:LISTED]) / LISTED,
            by_type=by_type[number],
            by_slug=by_slug[number],
            learned_by_type=learned_by_type[number],
            learned_by_slug=learned_by_slug[number],
            listed_by_type=listed_by_type[number],
            listed_by_slug=listed_by_slug[number],
        )
        for number, bench in enumerate(benches)
    ]


def measure_resident_mebibytes(campaigns: int, pid: int) -> float:
    """Measure the memory of one size; one per process, since memory is not returned."""
    bench = AuctionBench(campaigns)
    gc.collect()
    assert bench.by_type, "it is still there"
    return measure_usage([pid]).resident_bytes / (1 << 20)


class AuctionBench:
    """Auctions of many visitors on many placements, never twice in a row on the same."""

    def __init__(self, campaigns: int) -> None:
        self.campaigns = campaigns
        index = self._compile()
        now, states = SystemClock().now(), PlacementStates()
        states.exclude(Exclusions(campaigns=choose_half(campaigns)))
        self._markets = markets = Markets(states)
        started_at = time.thread_time()
        markets.install(run_steps(markets.prepare(index, now=now)))
        self.head_millis = (time.thread_time() - started_at) * 1e3
        slugs, requests = list(index.by_slug), build_requests(REQUESTS)
        self._learned = LearnedScoring(_build_model(), kinds=_choose_kinds(requests, campaigns))
        started_at = time.thread_time()
        run_steps(markets.rank(HEURISTIC, lambda: self._learned.strengths))
        self.ranking_seconds = time.thread_time() - started_at
        self.by_type: list[MarketRequest] = [
            (_require_market(markets.find_by_type(index, TYPES[number % len(TYPES)], now=now)), *request)
            for number, request in enumerate(requests)
        ]
        self.by_slug: list[MarketRequest] = [
            (_require_market(markets.find_by_slug(index, slugs[number % len(slugs)], now=now)), *request)
            for number, request in enumerate(requests)
        ]

    def _compile(self) -> Index:
        snapshot = build_auction_catalog(self.campaigns)
        started_at = time.thread_time()
        index = compile_index(snapshot)
        self.compile_seconds = time.thread_time() - started_at
        return index

    def run_auction(self, market: Market, context: Context, signals: Signals) -> WinningBid | None:
        win, _ = self._markets.decide(market, (context,), self._markets.build_scorers(market, signals))
        return win

    def run_learned_auction(self, market: Market, context: Context, signals: Signals) -> WinningBid | None:
        """Run an auction in which CTRs differ by ad."""
        win, _ = self._markets.decide(market, (context,), [self._learned.build_scorer(signals)])
        return win

    def count_bids(self, market: Market, context: Context, signals: Signals) -> int:
        scorers = self._markets.build_scorers(market, signals)
        return build_funnel(market.plan_scan(scorers), (context,), scorers).bid_count


def _build_model() -> Model:
    """Build a model as uneven as those trained on the traffic of `bench.scoring`."""
    chance = Random(SEED)  # noqa: S311 - not a secret
    weights = array("f", [chance.gauss(0, WEIGHTS_SPREAD) for _ in range(SLOTS)])
    return Model(version=1, weights=weights, highest=HIGHEST, crossing=CROSSING)


def _choose_kinds(requests: Sequence[tuple[Context, Signals]], campaigns: int) -> list[VisitorKind]:
    """Choose the kinds of visitors for which a process would rank so many bids."""
    asked = Counter(VisitorKind(signals.device, signals.segment) for _, signals in requests)
    return [kind for kind, _ in asked.most_common(min(KINDS_MAX, RANKED_MAX // campaigns))]


def _require_market(market: Market | None) -> Market:
    assert market is not None, "every placement of the bench is auctioned"
    return market


def _measure_spreads(works: Sequence[tuple[Work, Sequence[MarketRequest]]]) -> list[Spread]:
    best = [[1 << 62] * len(asked) for _, asked in works]
    gc.disable()
    for _ in range(REPEATS):
        for (work, asked), of_work in zip(works, best, strict=True):
            _measure_once(work, asked, of_work)
    gc.enable()
    return [_compute_spread(sorted(of_work)) for of_work in best]


def _measure_once(work: Work, asked: Sequence[MarketRequest], best: list[int]) -> None:
    clock = time.perf_counter_ns
    for number, (market, context, signals) in enumerate(asked):
        started_at = clock()
        work(market, context, signals)
        best[number] = min(best[number], clock() - started_at)


def _compute_spread(nanos: Sequence[int]) -> Spread:
    return Spread(sum(nanos) / len(nanos) / 1e3, nanos[len(nanos) * 99 // 100] / 1e3)
