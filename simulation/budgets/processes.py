"""The processes of the budget world, over simulated servers: real actors and confirms; real leases and auctions."""

import asyncio
from collections.abc import Callable, Sequence
from math import inf, nan
from random import Random  # noqa: TID251 - for its type
from typing import Final

import msgspec

from adloom.auction.bid import Bid
from adloom.auction.score import Scorer
from adloom.bidding.decide import decide_all
from adloom.bidding.ports import Nets
from adloom.bidding.window import BidDecision
from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.bid_model import MultiplierRequest, build_decided, build_window_request
from adloom.budgets.bids.decider import LocalTopics
from adloom.budgets.config.catalog_follower import CatalogFollower
from adloom.budgets.config.count_follower import CountFollower
from adloom.budgets.config.entity_config import CatalogAddresses, EntityConfigurer
from adloom.budgets.confirms.projection import CHARGES, ConfirmProjection
from adloom.budgets.transport.inbox import Inbox, ValkeyBroadcaster
from adloom.core.clock import Clock
from adloom.core.money import Micros
from adloom.events.projections.projection import Projection
from adloom.runtime.actors.actor import Address, AnyKind
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.runtime.locks import LeaderLoop
from adloom.runtime.loops import pause
from adloom.serving.auction.auctioneer import Auctioneer, AuctionRequest
from adloom.serving.auction.decide import WinningBid
from adloom.serving.auction.market import Market, Markets
from adloom.serving.auction.request import NO_USER_TEXT, UNKNOWN_VISITOR, ServeQuery
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.bid_block import BidBlock, lower_bidder
from adloom.serving.index.index import EMPTY, Candidate, Index
from adloom.serving.index.steps import run_steps
from adloom.serving.leases.client import SESSION_BITS, LeaseClient
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.context import ContextParser
from adloom.targeting.context import Context
from simulation.budgets.database import (
    BudgetDatabase,
    SimulatedCatalog,
    SimulatedCharges,
    SimulatedCounts,
    SimulatedSessions,
    SimulatedStates,
)
from simulation.campaigns import AUCTION_SLUG, PLACEMENT_KEY
from simulation.event_log import EventLogConnection, EventLogServer, GroupConnection
from simulation.faults import Host
from simulation.valkey import SimulatedLeaderLock, ValkeyServer, make_valkey

LEASE_SECONDS: Final = 5.0
STRATEGY_SECONDS: Final = 0.5
UNANSWERED: Final = 0.2
NONSENSE: Final = (nan, inf, -inf, -1.0, 0.0, 0.3, 0.7, 40.0)
# One context for all: targeting has its own tests.
ANY_VISITOR: Final = Context(
    device=None,
    country=None,
    language=None,
    is_logged_in=False,
    is_new_visitor=False,
    referrer_domain=None,
    segment=None,
    hour=0,
    day=0,
)
REQUEST: Final = FastRequest(b"POST", b"/api/v1/ads/serve")

Kinds = Callable[[], Sequence[AnyKind]]


class BudgetServers(msgspec.Struct, frozen=True, kw_only=True):
    """What outlives the processes."""

    database: BudgetDatabase
    valkey: ValkeyServer
    log: EventLogServer


class WildStrategies:
    """Answers campaigns that ask for their multiplier: late or not at all, as the pacer, or with nonsense."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._asked: list[MultiplierRequest] = []
        self.tell: Callable[[Address, msgspec.Struct], bool] = lambda _, __: False

    def take(self, request: MultiplierRequest) -> None:
        self._asked.append(request)

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await pause(STRATEGY_SECONDS, stop)
            asked, self._asked = self._asked, []
            for request in asked:
                if self._chance.random() < UNANSWERED:
                    continue
                [answer] = decide_all([build_window_request(request)], Nets())
                nonsense = self._chance.choice([None, *NONSENSE])
                decision = (
                    answer.decision if nonsense is None else BidDecision(multiplier=nonsense, reason="wild")
                )
                address = make_campaign_address(request.campaign_id, request.advertiser_id)
                self.tell(address, build_decided(request, decision, answer.state, {}))


class BudgetWorkerProcess:
    """A worker: budget actors while it leads, and the projection that confirms holds."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        name: str,
        servers: BudgetServers,
        *,
        clock: Clock,
        chance: Random,
        kinds: Kinds,
        hold_seconds: int,
        has_strategies: bool = False,
    ) -> None:
        self.host = Host()
        database, valkey = servers.database, make_valkey(servers.valkey, self.host)
        catalog, audience = SimulatedCatalog(database, self.host), ValkeyBroadcaster(valkey)
        strategies = WildStrategies(chance)
        configurer = EntityConfigurer(catalog, clock, hold_seconds=hold_seconds)
        actors = ActorHost(
            kinds(),
            SimulatedStates(database, self.host),
            introduction=configurer,
            audience=LocalTopics(audience, strategies.take),
            clock=clock,
            chance=chance,
            batch_max=chance.choice([1, 10, 2_000]),
        )
        strategies.tell = actors.tell
        counts = CountFollower(
            SimulatedCounts(database, self.host), EventLogConnection(servers.log, self.host), actors, clock
        )
        inbox = Inbox(
            valkey,
            SimulatedSessions(database, self.host),
            actors,
            audience,
            clock,
            request_counts=counts.take_request,
        )
        counts.find_logged_until = inbox.find_logged_until
        follower = CatalogFollower(valkey, catalog, configurer, actors)
        self._leader = LeaderLoop(
            SimulatedLeaderLock(servers.valkey, self.host, name=name),
            [actors.run, inbox.run, follower.run, counts.run, *([strategies.run] if has_strategies else [])],
            name="budgets",
        )
        store = SimulatedCharges(database, self.host)
        confirms = ConfirmProjection(
            store,
            store,
            CatalogAddresses(catalog),
            actors,
            clock,
            term=lambda: self._leader.terms,
        )
        group = _LeaderGroup(servers.log, self.host, name, self._leader)
        self._charging = Projection(CHARGES, group, confirms)

    async def run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._leader.run(stop))
            group.create_task(self._charging.run(stop))


class _LeaderGroup(GroupConnection):
    """A place in the consumer group of charges, given up while another worker leads."""

    def __init__(self, server: EventLogServer, host: Host, consumer: str, leader: LeaderLoop) -> None:
        super().__init__(server, host, CHARGES, consumer=consumer, lease_seconds=LEASE_SECONDS)
        self._leader = leader

    async def acquire(self) -> bool:
        if self._leader.is_leader:
            return await super().acquire()
        await self.release()
        return False


class Sold(msgspec.Struct, frozen=True, kw_only=True):
    """An offer that was made: its campaign, cost, hold, lease and second."""

    candidate: Candidate
    cost: Micros
    hold: Micros
    lease: int
    second: int
    win: WinningBid | None = None  # Where it was auctioned off,
    rivals: tuple[Bid, ...] = ()  # All bids that could have won, if that is certain.


class SellingProcess:
    """A delivery process: states, leases and their keeper."""

    def __init__(self, name: str, servers: BudgetServers, *, clock: Clock, chance: Random) -> None:
        self.host = Host()
        self._clock = clock
        self._states = PlacementStates()
        self._leasing = LeaseClient(
            make_valkey(servers.valkey, self.host),
            self._states,
            clock,
            process=name,
            new_session=lambda: chance.getrandbits(SESSION_BITS) or 1,
        )
        self._index = EMPTY
        reserver = Reserver(self._states, self._leasing.leases)
        self._reserve, self._reserve_unheld = reserver.reserve_all, reserver.without_holds().reserve_all
        self.is_unheld = False  # The visitor's address is beyond its bounds.
        self._markets = Markets(self._states)
        self._auctioneer = Auctioneer(self._markets, ContextParser(), reserver, self._states.find_reason)

    @property
    def session(self) -> int:
        return self._leasing.leases.session

    def learn(self, index: Index) -> None:
        now = self._clock.now()
        prepared = [run_steps(self._states.prepare(one, now=now)) for one in index.by_key.values()]
        heads = run_steps(self._markets.prepare(index, now=now))
        self._states.install(index, prepared)
        self._markets.install(heads)
        self._index = index
        self._leasing.update(index)

    async def run(self, stop: asyncio.Event) -> None:
        await self._leasing.run(stop)

    def make_offers(self) -> list[Sold]:
        placement = self._index.by_key.get(PLACEMENT_KEY)
        if placement is None:
            return []
        now = self._clock.now()
        second = int(now.timestamp())
        state = self._states.get(placement, now)
        reserve = self._reserve_unheld if self.is_unheld else self._reserve
        offers, leases = reserve(self._states.decide_offers(state, ANY_VISITOR, second), second)
        return [
            Sold(
                candidate=offer.candidate,
                cost=offer.candidate.price.cost,
                hold=Micros(offer.candidate.hold),
                lease=lease,
                second=second,
            )
            for offer, lease in zip(offers, leases, strict=True)
        ]

    def hold_auction(self) -> list[Sold]:
        """Return one offer at most."""
        now = self._clock.now()
        market = self._markets.find_by_slug(self._index, AUCTION_SLUG, now=now)
        if market is None:
            return []
        second = int(now.timestamp())
        auction = self._auctioneer.decide(REQUEST, UNKNOWN_VISITOR, self._index, market, now)
        rivals = self._list_rivals(market, auction.input.scorers[0])
        query = ServeQuery(NO_USER_TEXT, None, AUCTION_SLUG.decode(), UNKNOWN_VISITOR)
        request = AuctionRequest(
            REQUEST, query, self._index, now, second, auction, is_recorded=True, is_unheld=self.is_unheld
        )
        self._auctioneer.reserve_winner(request, is_recorded=True)
        win = request.auction.win
        if win is None:
            return []
        return [
            Sold(
                candidate=win.bidder,
                cost=request.auction.cost,
                hold=request.auction.hold,
                lease=request.lease,
                second=second,
                win=win,
                rivals=() if request.auction.input.unreserved else rivals,
            )
        ]

    def _list_rivals(self, market: Market, scorer: Scorer) -> tuple[Bid, ...]:
        """Return all bids that can pay; none while exclusions are still to be applied."""
        book = self._leasing.leases
        if book.changes:
            return ()
        out = frozenset[int]().union(*book.registry.list_excluded().values())
        return tuple(
            Bid(
                campaign_key=one.campaign_key,
                banner_key=one.banner_key,
                placement_key=one.placement_key,
                advertiser_key=one.payer if one.payer >= 0 else None,
                bid_type=one.bid_type,
                bid=one.bid,
                ctr=scorer.predict_ctr(one),
                quality=one.quality,
                floor=one.floor,
            )
            for block in market.placements[0].blocks
            if isinstance(block, BidBlock)
            for one in (lower_bidder(bidder, self._states.multipliers) for bidder in block.bidders)
            if one.campaign_key not in out
        )
