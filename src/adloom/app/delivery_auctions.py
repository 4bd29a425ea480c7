"""Composes the auctions of a delivery process."""

from random import SystemRandom  # noqa: TID251 - chance begins here
from typing import NamedTuple

from adloom.auction.bid import OwnBids
from adloom.auction.score import HEURISTIC, Heuristic, Scoring
from adloom.core.clock import Clock
from adloom.core.ids import SystemIds
from adloom.events.auction_log.side_stream import AuctionAppender, AuctionSideStream, pack_pair
from adloom.events.frequency.counts import FrequencyCounters
from adloom.events.ingest.token import TokenKeys
from adloom.events.log.append import EventAppender
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.settings import DeliverySettings
from adloom.serving.auction.api import AuctionRoutes, CountAuction
from adloom.serving.auction.auctioneer import Auctioneer
from adloom.serving.auction.encode import AdEncoder
from adloom.serving.auction.market import Markets
from adloom.serving.auction.recorder import AuctionRecorder, BatchingPublisher
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.background.model_loader import ModelLoader
from adloom.serving.eligibility.frequency_lookup import CappedAds, FrequencyLookup
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.context import ContextParser
from adloom.serving.request.sender_limits import SenderCheck


class AuctionParts(NamedTuple):
    """The parts of auctions that the process needs to know."""

    routes: AuctionRoutes
    frequency: FrequencyLookup
    recorder: AuctionRecorder
    publishers: tuple[BatchingPublisher, ...]

    def flush(self) -> None:
        for publisher in self.publishers:
            publisher.flush()


class RecordingParts(NamedTuple):
    """The stream of recorded auctions, and its appender."""

    beside: AuctionSideStream
    appender: AuctionAppender

    @property
    def left_out(self) -> int:
        return self.beside.left_out + self.appender.left_out


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


def build_auctions(  # noqa: PLR0913 - a composition root names them all
    settings: DeliverySettings,
    refresher: IndexRefresher,
    frequency: FrequencyLookup,
    clock: Clock,
    *,
    keys: TokenKeys,
    contexts: ContextParser,
    models: ModelLoader,
    leases: LocalLeases,
    appender: EventAppender,
    recording: AuctionAppender,
    senders: SenderCheck,
    count_traffic: CountAuction,
) -> AuctionParts:
    wanted = settings.auctions
    publisher, pair_publisher = (
        BatchingPublisher(appender.enqueue_all),
        BatchingPublisher(recording.enqueue_all),
    )
    recorder = AuctionRecorder(
        publisher.publish,
        lambda entry, auction: pair_publisher.publish(pack_pair(entry, auction)),
        SystemRandom(),
        sample_rate=wanted.sample_rate,
        bytes_per_second=wanted.record_bytes_per_second,
    )
    reserver = Reserver(refresher.states, leases)
    routes = AuctionRoutes(
        refresher.get_current,
        clock,
        SystemIds(),
        markets=refresher.markets,
        policies=_list_policies(models),
        auctioneer=Auctioneer(refresher.markets, contexts, reserver, refresher.states.find_reason),
        encoder=AdEncoder(keys.signer, public_url=settings.link_url),
        frequency=frequency,
        recorder=recorder,
        senders=senders,
        count_traffic=count_traffic,
    )
    return AuctionParts(routes, frequency, recorder, (pair_publisher, publisher))


def _list_policies(models: ModelLoader) -> dict[str, Scoring]:
    return {HEURISTIC: Heuristic(), models.name: models}
