"""A delivery process with generated pages and shortlists: `… contextual.delivery_process PORT PAGES CAMPAIGNS CANDIDATES`.

Routes, index, states and leases are the product's; only the worker's lease grants are simulated.
"""

import asyncio
import sys
from typing import Final, Generic, TypeVar

import uvloop

from adloom.core.clock import SystemClock
from adloom.core.ids import SiteId, SystemIds
from adloom.events.auction_log.side_stream import pack_pair
from adloom.events.ingest.token import TokenKeys
from adloom.market.results.window import build_results
from adloom.runtime.process.tuning import REQUEST_THRESHOLD, freeze_startup_objects
from adloom.runtime.random import make_chance
from adloom.serving.auction.recorder import AuctionRecorder
from adloom.serving.contextual.api import SlotRoutes
from adloom.serving.contextual.fill import SlotFiller
from adloom.serving.contextual.recent_texts import RecentTexts
from adloom.serving.contextual.slot_auctions import SlotAuctions
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.steps import run_steps
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.context import ContextParser
from bench.catalog import lease_all
from bench.contextual.catalog import ContextualCatalog, ContextualSize, build_contextual_catalog
from bench.servers import serve_routes

RECORDED_SHARE: Final = 1 / 40
SECRET: Final = "a secret of the bench, long enough to be one"  # noqa: S105 - of nothing

TableT = TypeVar("TableT")


class HeldTables(Generic[TableT]):
    """Tables of sites that are all in memory."""

    def __init__(self, tables: dict[SiteId, TableT]) -> None:
        self._tables = {site_id.int: table for site_id, table in tables.items()}

    def find(self, site_id: SiteId) -> TableT | None:
        return self._tables.get(site_id.int)


def build_slot_routes(catalog: ContextualCatalog, clock: SystemClock) -> SlotRoutes:
    index = catalog.index
    states, leases = PlacementStates(), LocalLeases(1)
    lease_all(states, leases, index)
    states.install(index, [run_steps(states.prepare(one, now=clock.now())) for one in index.by_key.values()])
    signer = TokenKeys(SECRET).signer
    results = build_results(
        {number: (number % 400, number % 3) for number in range(len(index.by_campaign) + 1)}
    )
    filler = SlotFiller(
        states,
        Reserver(states, leases),
        signer,
        public_url="https://ads.example",
        chance=make_chance(),
        read_results=lambda _site_id: results,
    )
    return SlotRoutes(
        lambda: index,
        HeldTables(catalog.pages),
        clock,
        SystemIds(),
        recent=RecentTexts(),
        shortlists=HeldTables(catalog.shortlists),
        auctions=SlotAuctions(filler, _build_recorder()),
        seal_user=signer.seal_user,
        contexts=ContextParser(),
    )


def _build_recorder() -> AuctionRecorder:
    """Record as large a share as a process does that answers 10,000 requests a second; it goes nowhere.

    By default a process records so many auctions a second. Those of a busy machine, which answers fewer requests, would
    make each of them seem dearer.
    """
    return AuctionRecorder(
        lambda _entry: None, pack_pair, make_chance(), sample_rate=RECORDED_SHARE, bytes_per_second=2**40
    )


async def main(port: int, size: ContextualSize) -> None:
    clock = SystemClock()
    routes = build_slot_routes(build_contextual_catalog(size, clock.now()), clock).list_routes()
    freeze_startup_objects(REQUEST_THRESHOLD)
    await serve_routes(port, routes)


if __name__ == "__main__":
    port, *numbers = map(int, sys.argv[1:])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # As in a delivery process.
        runner.run(main(port, ContextualSize(pages=numbers[0], campaigns=numbers[1], candidates=numbers[2])))
