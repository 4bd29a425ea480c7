"""`adloom bench decisions`: the cost of an auction in this process, from the request's context to the winner's price."""

import gc
import os
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random  # noqa: TID251 - seeded, and of the bench alone
from typing import Final

import msgspec
from rich.console import Console

from adloom.auction.features import SLOTS
from adloom.auction.learned import KINDS_MAX, LearnedScoring, VisitorKind
from adloom.auction.model import Model, find_weight_max
from adloom.auction.score import HEURISTIC, Signals
from adloom.core.clock import SystemClock
from adloom.serving.auction.decide import WinningBid
from adloom.serving.auction.funnel import build_funnel
from adloom.serving.auction.market import Market, Markets
from adloom.serving.background.model_loader import RANKED_MAX
from adloom.serving.eligibility.eligible_set import Exclusions
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import compile_index
from adloom.serving.index.steps import run_steps
from adloom.targeting.context import Context
from bench.catalog import AUCTION_TYPES, SEED, build_auction_catalog, build_auction_requests, choose_half
from bench.figures import MEBIBYTE, PROGRESS, BenchTable, find_p99, render
from bench.processes import measure_usage, run_in_fresh_process

SIZES: Final = (1_000, 10_000, 100_000)
REQUESTS: Final = 2_000
LISTED: Final = 200  # For so many requests all bids are listed.
REPEATS: Final = 15  # The best time of each request counts: the rest is noise of other processes.
# As in `bench.scoring` after 300,000 impressions of 800 banners.
WEIGHTS_SPREAD: Final = 0.15
HIGHEST: Final = 2.4
CROSSING: Final = 0.8
# "heads": to merge the highest bids of all markets; "ranked": to rank all bids by learned CTRs; "bids": that took part.
HEADINGS: Final = ["campaigns", "compile s", "heads ms", "ranked s", "MiB", "won", "bids"]

MarketRequest = tuple[Market, Context, Signals]
Work = Callable[[Market, Context, Signals], object]
Spread = tuple[float, float]  # The mean and the 99th percentile of the time per request, in µs.


def main() -> None:
    """Measure auctions in process, by type and by slug, with flat and with learned CTRs, by number of campaigns."""
    memory: list[float] = []
    benches: list[AuctionBench] = []
    for size in SIZES:
        PROGRESS.say(f"memory of {size:,} campaigns")
        memory.append(run_in_fresh_process(measure_resident_mebibytes, size))
        PROGRESS.say(f"compiling and ranking {size:,} campaigns")
        benches.append(AuctionBench(size))
    gc.collect()
    gc.freeze()
    works: dict[str, list[tuple[Work, Sequence[MarketRequest]]]] = {
        "by type": [(bench.run_auction, bench.by_type) for bench in benches],
        "by slug": [(bench.run_auction, bench.by_slug) for bench in benches],
        "learned, type": [(bench.run_learned_auction, bench.by_type) for bench in benches],
        "learned, slug": [(bench.run_learned_auction, bench.by_slug) for bench in benches],
        # Visitors of a segment that never came before: nothing is ranked or cached for them.
        "unseen, type": [(bench.run_unseen_auction, bench.by_type) for bench in benches],
        "unseen, slug": [(bench.run_unseen_auction, bench.by_slug) for bench in benches],
        # To list the highest 256 bids and count the others, for the record.
        "listed, type": [(bench.count_bids, bench.by_type[:LISTED]) for bench in benches],
        "listed, slug": [(bench.count_bids, bench.by_slug[:LISTED]) for bench in benches],
    }
    spreads = {name: _measure_spreads(name, of_sizes) for name, of_sizes in works.items()}
    PROGRESS.say("counting wins and bids")
    rows = [
        [*bench.format_cells(mebibytes), *(f"{mean:.1f} / {p99:.1f}" for mean, p99 in of_size)]
        for bench, mebibytes, *of_size in zip(benches, memory, *spreads.values(), strict=True)
    ]
    console = Console(width=190)
    title = "Auctions in process, µs: mean / p99"
    console.print(render(BenchTable(title=title, headings=[*HEADINGS, *spreads], rows=rows)))
    growth = {name: of_sizes[-1][0] / of_sizes[0][0] for name, of_sizes in spreads.items()}
    console.print(
        f"Growth from {SIZES[0]:,} to {SIZES[-1]:,} campaigns: "
        + ", ".join(f"{name} {times:.2f} times" for name, times in growth.items() if "listed" not in name)
    )


def measure_resident_mebibytes(campaigns: int) -> float:
    bench = AuctionBench(campaigns)
    gc.collect()
    assert bench.by_type, "it is still there"
    return measure_usage([os.getpid()]).resident_bytes / MEBIBYTE


class AuctionBench:
    """Auctions of many visitors on many placements, never twice in a row on the same."""

    def __init__(self, campaigns: int) -> None:
        self._campaigns = campaigns
        self._segments = 0
        snapshot = build_auction_catalog(campaigns)
        started_at = time.thread_time()
        index = compile_index(snapshot)
        self._compile_seconds = time.thread_time() - started_at
        now, states = SystemClock().now(), PlacementStates()
        states.exclude(Exclusions(campaigns=choose_half(campaigns)))
        self._markets = markets = Markets(states)
        started_at = time.thread_time()
        markets.install(run_steps(markets.prepare(index, now=now)))
        self._head_millis = (time.thread_time() - started_at) * 1e3
        slugs, requests = list(index.by_slug), build_auction_requests(REQUESTS)
        self._learned = LearnedScoring(_build_model(), kinds=_choose_kinds(requests, campaigns))
        started_at = time.thread_time()
        run_steps(markets.rank(HEURISTIC, lambda: self._learned.strengths))
        self._ranking_seconds = time.thread_time() - started_at
        self.by_type: list[MarketRequest] = [
            (
                _require_market(
                    markets.find_by_type(index, AUCTION_TYPES[number % len(AUCTION_TYPES)], now=now)
                ),
                *request,
            )
            for number, request in enumerate(requests)
        ]
        self.by_slug: list[MarketRequest] = [
            (_require_market(markets.find_by_slug(index, slugs[number % len(slugs)], now=now)), *request)
            for number, request in enumerate(requests)
        ]

    def format_cells(self, mebibytes: float) -> list[str]:
        won = sum(self.run_auction(*asked) is not None for asked in self.by_type)
        bids = sum(self.count_bids(*asked) for asked in self.by_type[:LISTED])
        return [
            f"{self._campaigns:,}",
            f"{self._compile_seconds:.2f}",
            f"{self._head_millis:.0f}",
            f"{self._ranking_seconds:.2f}",
            f"{mebibytes:.0f}",
            f"{won / REQUESTS:.0%}",
            f"{bids / LISTED:.0f}",
        ]

    def run_auction(self, market: Market, context: Context, signals: Signals) -> WinningBid | None:
        win, _ = self._markets.decide(market, (context,), self._markets.build_scorers(market, signals))
        return win

    def run_learned_auction(self, market: Market, context: Context, signals: Signals) -> WinningBid | None:
        """Run an auction in which CTRs differ by ad."""
        win, _ = self._markets.decide(market, (context,), [self._learned.build_scorer(signals)])
        return win

    def run_unseen_auction(self, market: Market, context: Context, signals: Signals) -> WinningBid | None:
        """Run an auction in which CTRs differ by ad, for a visitor of a new segment."""
        self._segments += 1
        asked = msgspec.structs.replace(signals, segment=f"new {self._segments}", device=context.device)
        return self.run_learned_auction(market, context, asked)

    def count_bids(self, market: Market, context: Context, signals: Signals) -> int:
        scorers = self._markets.build_scorers(market, signals)
        return build_funnel(market.plan_scan(scorers), (context,), scorers).bid_count


def _build_model() -> Model:
    """Build a model as uneven as those trained on the traffic of `bench.scoring`."""
    chance = Random(SEED)  # noqa: S311 - not a secret
    weights = array("f", [chance.gauss(0, WEIGHTS_SPREAD) for _ in range(SLOTS)])
    return Model(
        version=1,
        weights=weights,
        highest=HIGHEST,
        crossing=CROSSING,
        weight_max=find_weight_max(weights),
    )


def _choose_kinds(requests: Sequence[tuple[Context, Signals]], campaigns: int) -> list[VisitorKind]:
    """Choose the kinds of visitors for which a process would rank so many bids."""
    asked = Counter(VisitorKind(signals.device, signals.segment) for _, signals in requests)
    return [kind for kind, _ in asked.most_common(min(KINDS_MAX, RANKED_MAX // campaigns))]


def _require_market(market: Market | None) -> Market:
    assert market is not None, "every placement of the bench is auctioned"
    return market


def _measure_spreads(name: str, works: Sequence[tuple[Work, Sequence[MarketRequest]]]) -> list[Spread]:
    """Measure all sizes in rotation, so that other load on the machine affects all alike."""
    best = [[1 << 62] * len(asked) for _, asked in works]
    gc.disable()
    for repeat in range(1, REPEATS + 1):
        for size, (work, asked), of_work in zip(SIZES, works, best, strict=True):
            PROGRESS.say(f"{name}, round {repeat} of {REPEATS}: {size:,} campaigns")
            _measure_once(work, asked, of_work)
    gc.enable()
    return [(sum(nanos) / len(nanos) / 1e3, find_p99(nanos) / 1e3) for nanos in best]


def _measure_once(work: Work, asked: Sequence[MarketRequest], best: list[int]) -> None:
    clock = time.perf_counter_ns
    for number, (market, context, signals) in enumerate(asked):
        started_at = clock()
        work(market, context, signals)
        best[number] = min(best[number], clock() - started_at)
