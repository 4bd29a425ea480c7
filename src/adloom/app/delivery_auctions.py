"""Composes the auctions of a delivery process, those of its contextual slots too, and texts from readers' browsers."""

from random import SystemRandom  # noqa: TID251 - chance begins here
from typing import NamedTuple

from adloom.app.delivery_parts import PublicParts, Running
from adloom.auction.bid import OwnBids
from adloom.auction.creative_choice import ChoiceMethod
from adloom.auction.score import HEURISTIC, Heuristic, Scoring
from adloom.core.clock import Clock
from adloom.core.ids import SystemIds
from adloom.events.auction_log.side_stream import pack_pair
from adloom.events.frequency.counts import FrequencyCounters
from adloom.pages.classify.queue import ClassifyQueue
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.random import make_chance
from adloom.runtime.settings import DeliverySettings
from adloom.serving.auction.api import AuctionRoutes
from adloom.serving.auction.auctioneer import Auctioneer
from adloom.serving.auction.encode import AdEncoder
from adloom.serving.auction.market import Markets
from adloom.serving.auction.recorder import AuctionRecorder, BatchingPublisher
from adloom.serving.background.model_loader import ModelLoader
from adloom.serving.contextual.api import SlotRoutes
from adloom.serving.contextual.classify_page import ClassifyPageRoutes
from adloom.serving.contextual.fill import SlotFiller
from adloom.serving.contextual.recent_texts import RecentTexts
from adloom.serving.contextual.slot_auctions import SlotAuctions
from adloom.serving.direct.frequency import DirectFrequency
from adloom.serving.eligibility.frequency_lookup import CappedAds, FrequencyLookup
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.leases.reserve import Reserver


class AuctionParts(NamedTuple):
    """The parts of auctions that the process needs to know."""

    routes: AuctionRoutes
    recorder: AuctionRecorder
    publishers: tuple[BatchingPublisher, ...]

    def flush(self) -> None:
        for publisher in self.publishers:
            publisher.flush()


def build_markets(settings: DeliverySettings, states: PlacementStates, models: ModelLoader) -> Markets:
    markets = Markets(states, policies=_list_policies(models), own_bids=OwnBids(settings.auctions.own_bids))
    models.set_ranker(markets.rank)
    return markets


def build_frequency(settings: DeliverySettings, line: DedicatedConnection, clock: Clock) -> FrequencyLookup:
    wanted = settings.auctions
    return FrequencyLookup(
        FrequencyCounters(line),
        clock,
        when_away=CappedAds(wanted.frequency_when_away),
        without_user=CappedAds(wanted.frequency_without_user),
    )


def build_auctions(settings: DeliverySettings, running: Running, public: PublicParts) -> AuctionParts:
    wanted, refresher = settings.auctions, running.refresher
    publisher = BatchingPublisher(running.appender.enqueue_all)
    pair_publisher = BatchingPublisher(running.recording.appender.enqueue_all)
    recorder = AuctionRecorder(
        publisher.publish,
        lambda entry, auction: pair_publisher.publish(pack_pair(entry, auction)),
        SystemRandom(),
        sample_rate=wanted.sample_rate,
        bytes_per_second=wanted.record_bytes_per_second,
    )
    reserver = Reserver(refresher.states, running.leases.leases)
    routes = AuctionRoutes(
        refresher.get_current,
        running.clock,
        SystemIds(),
        markets=refresher.markets,
        policies=_list_policies(running.models),
        auctioneer=Auctioneer(refresher.markets, public.contexts, reserver, refresher.states.find_reason),
        encoder=AdEncoder(public.keys.signer, public_url=settings.link_url),
        frequency=public.frequency,
        recorder=recorder,
        senders=public.traffic.senders,
        count_traffic=running.site_traffic.count_auction,
    )
    return AuctionParts(routes, recorder, (pair_publisher, publisher))


def _list_policies(models: ModelLoader) -> dict[str, Scoring]:
    return {HEURISTIC: Heuristic(), models.name: models}


class ContextualParts(NamedTuple):
    """The routes of contextual delivery."""

    slots: SlotRoutes
    texts: ClassifyPageRoutes


def build_contextual(
    settings: DeliverySettings, running: Running, public: PublicParts, auctions: AuctionParts
) -> ContextualParts:
    recent, refresher, sites, traffic = RecentTexts(), running.refresher, running.sites, public.traffic
    filler = SlotFiller(
        refresher.states,
        Reserver(refresher.states, running.leases.leases),
        public.keys.signer,
        public_url=settings.link_url,
        chance=make_chance(),
        read_results=sites.results.find,
        method=ChoiceMethod(settings.auctions.creative_choice),
    )
    publish_served = running.appender.enqueue if settings.has_served_events else None
    return ContextualParts(
        SlotRoutes(
            lambda: refresher.current,
            sites.pages,
            running.clock,
            SystemIds(),
            recent=recent,
            shortlists=sites.shortlists,
            auctions=SlotAuctions(filler, auctions.recorder, publish_served=publish_served),
            seal_user=public.keys.signer.seal_user,
            contexts=public.contexts,
            senders=traffic.senders,
            frequency=DirectFrequency(public.frequency),
            page_check=traffic.pages,
            count_traffic=running.site_traffic.count,
            count_page=running.page_traffic.count,
        ),
        ClassifyPageRoutes(
            lambda: refresher.current,
            sites.pages,
            ClassifyQueue(running.valkey),
            running.clock,
            recent=recent,
            find_rate_key=traffic.detector.find_rate_key,
            site_counts=traffic.bounds.texts_of_site,
            address_counts=traffic.bounds.texts,
        ),
    )
