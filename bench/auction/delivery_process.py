"""A delivery process with a generated catalog: `… auction.delivery_process PORT REDIS_URL CAMPAIGNS [no-frequency]`.

Routes, index, leases, look-ups and event log are the product's; only the worker's lease grants are simulated.
"""

import asyncio
import sys
from collections import deque
from collections.abc import Iterable
from contextlib import aclosing
from random import Random, SystemRandom  # noqa: TID251 - of the bench alone
from typing import Final
from uuid import UUID

import uvloop

from adloom.auction.score import HEURISTIC, Heuristic
from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.events.auction_log.side_stream import AuctionAppender, AuctionSideStream, pack_pair
from adloom.events.frequency.counts import FIRST_GENERATION, FrequencyCounters, make_generation_prefix
from adloom.events.frequency.windows import list_buckets
from adloom.events.ingest.token import TokenKeys
from adloom.events.log.append import EventAppender
from adloom.events.log.stream import ValkeyEventLog
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.process.tuning import REQUEST_THRESHOLD, freeze_startup_objects
from adloom.runtime.settings import AUCTION_RECORD_BYTES_PER_SECOND
from adloom.runtime.valkey import Valkey, open_valkey
from adloom.serving.auction.api import AuctionRoutes
from adloom.serving.auction.auctioneer import Auctioneer
from adloom.serving.auction.encode import AdEncoder
from adloom.serving.auction.market import Markets
from adloom.serving.auction.recorder import AuctionRecorder, BatchingPublisher
from adloom.serving.eligibility.eligible_set import Exclusions
from adloom.serving.eligibility.frequency_lookup import FrequencyLookup
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.bid_block import BidBlock
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import Index, IndexedPlacement
from adloom.serving.index.steps import run_steps
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.context import ContextParser
from bench.catalog import SEED, build_auction_catalog, choose_half, lease_all
from bench.load import USER_BEGINS, USERS
from bench.servers import serve_routes

SESSION: Final = 1
SHOWN_BANNERS: Final = 3
CHANGES_A_SECOND: Final = 50
OUT_MAX: Final = 100
SECRET: Final = "a secret of the bench, long enough to be one"  # noqa: S105 - of nothing


async def main(port: int, redis_url: str, campaigns: int, *, has_frequency_caps: bool) -> None:
    clock = SystemClock()
    index = compile_index(build_auction_catalog(campaigns, has_frequency_caps=has_frequency_caps))
    states, leases = PlacementStates(), LocalLeases(SESSION)
    lease_all(states, leases, index)
    states.exclude(Exclusions(campaigns=choose_half(campaigns)), source="bench")
    states.install(index, [run_steps(states.prepare(one, now=clock.now())) for one in index.by_key.values()])
    markets = Markets(states)
    markets.install(run_steps(markets.prepare(index, now=clock.now())))
    freeze_startup_objects(REQUEST_THRESHOLD)
    async with (
        open_valkey(redis_url) as valkey,
        aclosing(DedicatedConnection(valkey)) as line,
        EventAppender(ValkeyEventLog(valkey)) as appender,
        AuctionAppender(AuctionSideStream(valkey), appender.enqueue_all, None) as recording,
    ):
        if has_frequency_caps:
            await _record_views(valkey, index.by_key.values(), clock)
        auctions = _build_routes(index, markets, Reserver(states, leases), states, line, appender, recording)
        coming_and_going = asyncio.ensure_future(_toggle_budgets(states, campaigns))
        await serve_routes(port, auctions.list_routes())
        coming_and_going.cancel()


async def _record_views(valkey: Valkey, placements: Iterable[IndexedPlacement], clock: SystemClock) -> None:
    """Record earlier views of capped banners for every user; few of them reach their cap."""
    chance = Random(SEED)  # noqa: S311 - not a secret
    banners = [
        str(UUID(bytes=one.pair[:16]))
        for placement in placements
        for block in placement.blocks
        if isinstance(block, BidBlock)
        for one in block.bidders
        if one.frequency
    ]
    pipeline = valkey.pipeline(transaction=False)
    for number in range(USERS):
        shown = {banner: chance.randint(1, 3) for banner in chance.sample(banners, SHOWN_BANNERS)}
        for bucket in list_buckets(clock.now()):
            key = f"{make_generation_prefix(FIRST_GENERATION)}{USER_BEGINS}{number:012}{bucket.suffix}"
            pipeline.hset(key, items=[part for pair in shown.items() for part in pair])
    await pipeline.execute()


async def _toggle_budgets(states: PlacementStates, campaigns: int) -> None:
    """Let campaigns run out of budget and get some again, as on a busy day."""
    chance = Random(SEED)  # noqa: S311 - not a secret
    out: deque[int] = deque()
    while True:
        await asyncio.sleep(1 / CHANGES_A_SECOND)
        out.append(chance.randrange(campaigns))
        states.mark_changed({out[-1]: "budget"})
        if len(out) > OUT_MAX:
            states.mark_changed({out.popleft(): None})


def _build_routes(  # noqa: PLR0913, PLR0917 - a composition root names them all
    index: Index,
    markets: Markets,
    reserver: Reserver,
    states: PlacementStates,
    line: DedicatedConnection,
    appender: EventAppender,
    recording: AuctionAppender,
) -> AuctionRoutes:
    clock, pair_teller = SystemClock(), BatchingPublisher(recording.enqueue_all)
    return AuctionRoutes(
        lambda: index,
        clock,
        SystemIds(),
        markets=markets,
        policies={HEURISTIC: Heuristic()},
        auctioneer=Auctioneer(markets, ContextParser(), reserver, states.find_reason),
        encoder=AdEncoder(TokenKeys(SECRET).signer, public_url="https://ads.example"),
        frequency=FrequencyLookup(FrequencyCounters(line), clock),
        recorder=AuctionRecorder(
            BatchingPublisher(appender.enqueue_all).publish,
            lambda entry, auction: pair_teller.publish(pack_pair(entry, auction)),
            SystemRandom(),
            sample_rate=1.0,
            bytes_per_second=AUCTION_RECORD_BYTES_PER_SECOND,
        ),
    )


if __name__ == "__main__":
    _, port, redis_url, campaigns, *without = sys.argv
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # As in a delivery process.
        runner.run(main(int(port), redis_url, int(campaigns), has_frequency_caps=without != ["no-frequency"]))
