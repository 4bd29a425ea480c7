"""The parts of a delivery process: what runs beside its requests, and what all of its public routes share."""

import asyncio
from typing import NamedTuple

from adloom.app.delivery_traffic import AddressBounds, TrafficParts
from adloom.core.clock import Clock
from adloom.events.auction_log.side_stream import AuctionAppender, AuctionSideStream
from adloom.events.ingest.token import TokenKeys
from adloom.events.log.append import EventAppender
from adloom.events.log.spool.drain import DiskSpool
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.background.model_loader import ModelLoader
from adloom.serving.background.page_traffic import PageTraffic
from adloom.serving.background.reporter_keys import ReporterKeys
from adloom.serving.background.site_results import ResultsLoader
from adloom.serving.background.site_tables import PageLoader, ShortlistLoader
from adloom.serving.background.site_traffic import SiteTraffic
from adloom.serving.eligibility.frequency_lookup import FrequencyLookup
from adloom.serving.index.index import Index
from adloom.serving.leases.client import LeaseClient
from adloom.serving.request.context import ContextParser


class RecordingParts(NamedTuple):
    """The stream of recorded auctions, and its appender."""

    beside: AuctionSideStream
    appender: AuctionAppender

    @property
    def left_out(self) -> int:
        return self.beside.left_out + self.appender.left_out


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


class Running(NamedTuple):
    """What runs beside the requests of a process, and what they all need."""

    clock: Clock
    pool: Pool
    line: DedicatedConnection
    spool: DiskSpool | None
    appender: EventAppender
    recording: RecordingParts
    leases: LeaseClient
    models: ModelLoader
    reporters: ReporterKeys
    sites: SiteLoaders
    valkey: Valkey
    refresher: IndexRefresher
    bounds: AddressBounds
    site_traffic: SiteTraffic
    page_traffic: PageTraffic


class PublicParts(NamedTuple):
    """What the public routes share."""

    keys: TokenKeys
    contexts: ContextParser
    traffic: TrafficParts
    frequency: FrequencyLookup
