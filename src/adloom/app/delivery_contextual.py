"""The contextual part of a delivery process: what is known of pages, and texts from their readers' browsers."""

import asyncio
from typing import NamedTuple

from adloom.app.delivery_auctions import AuctionParts
from adloom.app.delivery_traffic import TrafficParts
from adloom.auction.creative_choice import ChoiceMethod
from adloom.core.clock import Clock
from adloom.core.ids import SystemIds
from adloom.events.ingest.token import TokenSigner
from adloom.pages.classify.queue import ClassifyQueue
from adloom.runtime.postgres import Pool
from adloom.runtime.random import make_chance
from adloom.runtime.settings import DeliverySettings
from adloom.runtime.valkey import Valkey
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.background.site_results import ResultsLoader
from adloom.serving.background.site_tables import PageLoader, ShortlistLoader
from adloom.serving.contextual.api import CountPage, SlotRoutes
from adloom.serving.contextual.classify_page import ClassifyPageRoutes
from adloom.serving.contextual.fill import SlotFiller
from adloom.serving.contextual.recent_texts import RecentTexts
from adloom.serving.contextual.slot_auctions import Publish, SlotAuctions
from adloom.serving.direct.api import CountTraffic
from adloom.serving.direct.frequency import DirectFrequency
from adloom.serving.index.index import Index
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.context import ContextParser


class SiteLoaders:
    """What a delivery process holds of sites: pages, shortlists, and how creatives did."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self.pages = PageLoader(pool, valkey)
        self.shortlists = ShortlistLoader(pool, valkey)
        self.results = ResultsLoader(valkey)

    def prepare(self, index: Index) -> None:
        """Read what belongs to contextual placements before anybody asks."""
        self.pages.prepare(index)
        self.shortlists.prepare(index)

    async def run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            for loader in (self.pages, self.shortlists, self.results):
                group.create_task(loader.run(stop))


class ContextualParts(NamedTuple):
    """The routes of contextual delivery."""

    slots: SlotRoutes
    texts: ClassifyPageRoutes


def build_contextual(  # noqa: PLR0913 - a composition root names them all
    settings: DeliverySettings,
    refresher: IndexRefresher,
    sites: SiteLoaders,
    valkey: Valkey,
    clock: Clock,
    *,
    leases: LocalLeases,
    signer: TokenSigner,
    contexts: ContextParser,
    traffic: TrafficParts,
    auctions: AuctionParts,
    count_traffic: CountTraffic,
    count_page: CountPage,
    publish_served: Publish | None,
) -> ContextualParts:
    recent = RecentTexts()
    filler = SlotFiller(
        refresher.states,
        Reserver(refresher.states, leases),
        signer,
        public_url=settings.link_url,
        chance=make_chance(),
        read_results=sites.results.find,
        method=ChoiceMethod(settings.auctions.creative_choice),
    )
    return ContextualParts(
        SlotRoutes(
            lambda: refresher.current,
            sites.pages,
            clock,
            SystemIds(),
            recent=recent,
            shortlists=sites.shortlists,
            auctions=SlotAuctions(filler, auctions.recorder, publish_served=publish_served),
            seal_user=signer.seal_user,
            contexts=contexts,
            senders=traffic.senders,
            frequency=DirectFrequency(auctions.frequency),
            page_check=traffic.pages,
            count_traffic=count_traffic,
            count_page=count_page,
        ),
        ClassifyPageRoutes(
            lambda: refresher.current,
            sites.pages,
            ClassifyQueue(valkey),
            clock,
            recent=recent,
            find_rate_key=traffic.detector.find_rate_key,
            site_counts=traffic.bounds.texts_of_site,
            address_counts=traffic.bounds.texts,
        ),
    )
