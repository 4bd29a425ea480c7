"""A cached auction is what would be decided now, whatever candidates come or go."""

from datetime import time, timedelta
from random import Random

import msgspec

from adloom.auction.bid import BidType
from adloom.auction.learned import LEARNED, LearnedScoring
from adloom.auction.score import HEURISTIC, Heuristic, Scorer, Signals, Strengths
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.schedule.schedule import Schedule, ScheduleStatus
from adloom.serving.auction import result_cache
from adloom.serving.auction.auctioneer import Auctioneer, AuctionRequest
from adloom.serving.auction.bid_record import BidRecorder
from adloom.serving.auction.decide import WinningBid
from adloom.serving.auction.market import Market, Markets
from adloom.serving.auction.request import (
    NO_USER_TEXT,
    UNKNOWN_VISITOR,
    ServeQuery,
    VisitorInfo,
    parse_request,
)
from adloom.serving.auction.result_cache import DecidedAuction
from adloom.serving.eligibility.caps import CapTracker
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.index import Index
from adloom.serving.index.rows import AssignmentRow
from adloom.serving.index.steps import run_steps
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.context import ContextParser
from adloom.targeting.rules import parse_rule
from tests.serving.auction.marketplace import NOON, a_row, a_slot, an_index
from tests.serving.auction.test_learned_auctions import learned
from tests.support.for_each import for_each
from tests.support.rows import an_id

AGENTS = {
    "phone": b"Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Mobile/15E148",
    "desktop": b"Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0",
}
HEADERS = ContextParser()
CONTEXTS = (b"{}", b'{"country":"FR"}', b'{"segment":"high-intent"}', b'{"lastPurchaseDays":"3"}')


class Policy:
    """A learned policy whose model can be replaced, as a process does it."""

    name = LEARNED

    def __init__(self) -> None:
        self.scoring = LearnedScoring()

    @property
    def version(self) -> int:
        return self.scoring.version

    @property
    def strengths(self) -> tuple[Strengths, ...]:
        return self.scoring.strengths

    def build_scorer(self, signals: Signals) -> Scorer:
        return self.scoring.build_scorer(signals)


class World:
    """Holds auctions in a process that remembers them."""

    def __init__(self, index: Index) -> None:
        self.index, self.now, self.policy = index, NOON, Policy()
        self.states = PlacementStates()
        self.markets = Markets(self.states, policies={HEURISTIC: Heuristic(), LEARNED: self.policy})
        reserver = Reserver(self.states, CapTracker(), LocalLeases(1))
        self.auctioneer = Auctioneer(self.markets, HEADERS, reserver, self.states.find_reason)

    def find_market(self, slug: str | None = None) -> Market:
        if slug is None:
            market = self.markets.find_by_type(self.index, "feed", now=self.now)
        else:
            market = self.markets.find_by_slug(self.index, slug.encode(), now=self.now)
        assert market is not None
        return market

    def auction(self, request: FastRequest, visitor: VisitorInfo, slug: str | None = None) -> DecidedAuction:
        return self.auctioneer.decide(request, visitor, self.index, self.find_market(slug), self.now)

    def decide_uncached(
        self, request: FastRequest, visitor: VisitorInfo, slug: str | None = None
    ) -> WinningBid | None:
        """Decide without a cache."""
        fresh = Auctioneer(
            self.markets,
            HEADERS,
            Reserver(self.states, CapTracker(), LocalLeases(1)),
            self.states.find_reason,
        )
        return fresh.decide(request, visitor, self.index, self.find_market(slug), self.now).win

    def exclude(self, *campaigns: int) -> None:
        self.states.mark_changed(dict.fromkeys(campaigns, "budget"))

    def put_back(self, *campaigns: int) -> None:
        self.states.mark_changed(dict.fromkeys(campaigns))


def a_request(agent: str = "desktop") -> FastRequest:
    return FastRequest(b"POST", b"/api/v1/ads/serve", headers=[(b"user-agent", AGENTS[agent])])


def a_visitor(context: bytes = b"{}") -> VisitorInfo:
    return parse_request(b'{"userId":"%b","userContext":%b}' % (str(an_id(7)).encode(), context)).visitor


def opening(first: int, last: int) -> Schedule:
    return Schedule(status=ScheduleStatus.SCHEDULED, window_start=time(first), window_end=time(last))


def a_random_row(number: int, chance: Random) -> AssignmentRow:
    rules = (
        (),
        (parse_rule("country", "in", ["FR"]),),
        (parse_rule("device", "in", ["mobile"]),),
        (parse_rule("hour_of_day", "in", sorted(chance.sample(range(24), 12))),),
    )
    return a_row(
        number,
        f"{chance.randint(1, 9) / 100:.2f}",
        bid_type=chance.choice(list(BidType)),
        rules=chance.choice(rules),
        placement_key=chance.choice([1, 2]),
        schedule=opening(10, 14) if chance.random() < 1 / 4 else Schedule(status=ScheduleStatus.EVERGREEN),
    )


def a_random_index(chance: Random) -> Index:
    slots = [a_slot(1), a_slot(2, scoring=LEARNED, timezone="Asia/Kolkata")]
    return an_index([a_random_row(number, chance) for number in range(1, 13)], *slots)


@for_each("seed", range(40))
def test_cached_auctions_agree_with_uncached_ones(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - not a secret
    world = World(a_random_index(chance))
    found = 0
    for step in range(60):
        match chance.choice(["out", "back", "later", "model", "index", "ask", "ask", "ask"]):
            case "out":
                world.exclude(chance.randint(1, 12))
            case "back":
                world.put_back(chance.randint(1, 12))
            case "later":
                world.now += timedelta(minutes=chance.choice([1, 29, 31, 90]))
            case "model":
                world.policy.scoring = learned(chance, 12, 50)
                world.policy.scoring.version = step + 1
            case "index" if chance.random() < 1 / 3:
                world.index = a_random_index(chance)
            case _:
                pass
        for _ in range(4):
            request, visitor = a_request(chance.choice(list(AGENTS))), a_visitor(chance.choice(CONTEXTS))
            slug = chance.choice([None, "slot-1", "slot-2"])
            auction = world.auction(request, visitor, slug)

            assert auction.win == world.decide_uncached(request, visitor, slug)
            found += auction.win is not None
    assert found, "some auctions have a winner"


def test_visitors_with_equal_contexts_share_an_auction() -> None:
    world = World(an_index([a_row(1, "3"), a_row(2, "2")]))

    first = world.auction(a_request(), a_visitor())

    assert world.auction(a_request(), a_visitor()) is first
    assert world.auction(a_request("phone"), a_visitor()) is not first
    assert world.auction(a_request(), a_visitor(b'{"country":"FR"}')) is not first


def test_changes_elsewhere_change_nothing() -> None:
    slots = [a_slot(1), a_slot(2, placement_type="story")]
    world = World(an_index([a_row(1, "3"), a_row(2, "2", placement_key=2)], *slots))
    first = world.auction(a_request(), a_visitor())

    world.exclude(2)

    assert world.auction(a_request(), a_visitor()) is first


def test_bids_that_could_not_change_anything_are_recorded_too() -> None:
    rows = [a_row(1, "9"), a_row(2, "8"), a_row(3, "0.01", placement_key=2)]
    world = World(an_index(rows, a_slot(1), a_slot(2)))
    first = world.auction(a_request(), a_visitor())
    before = sold(world)

    world.exclude(3)

    assert world.auction(a_request(), a_visitor()) is first
    assert (before.bid_count, sold(world).bid_count) == (3, 2)


def test_what_was_decided_from_a_shelf_is_over_when_another_takes_its_place() -> None:
    world = World(an_index([a_row(1, "3"), a_row(2, "2")]))
    first = world.auction(a_request(), a_visitor())
    assert first.win is not None
    [placement] = world.index.by_key.values()

    world.states.install(world.index, [run_steps(world.states.prepare(placement, now=world.now))])
    world.markets.install({})
    world.exclude(first.win.bidder.campaign_key)

    second = world.auction(a_request(), a_visitor()).win
    assert second is not None
    assert second.bidder.campaign_key == 2


def test_bids_are_recorded_once_for_requests_that_share_an_auction() -> None:
    world = World(an_index([a_row(1, "3"), a_row(2, "2"), a_row(3, "1")]))
    first, second = (sold(world) for _ in range(2))
    world.exclude(1)
    third = sold(world)

    assert first.bids == second.bids != third.bids
    assert (first.examined_count, second.examined_count, third.examined_count) == (3, 0, 3)
    assert third == noted(world)


def test_the_oldest_are_forgotten() -> None:
    world = World(an_index([a_row(1, "3")]))
    first = world.auction(a_request(), a_visitor(b'{"segment":"s-0"}'))
    for number in range(1, result_cache.AUCTIONS_MAX):
        world.auction(a_request(), a_visitor(b'{"segment":"s-%d"}' % number))
    kept = world.auction(a_request(), a_visitor(b'{"segment":"s-0"}'))
    world.auction(a_request(), a_visitor(b'{"segment":"one more"}'))

    assert kept is first
    assert world.auction(a_request(), a_visitor(b'{"segment":"s-0"}')) is not first


def sold(world: World) -> result_cache.BidRecord:
    auction = world.auction(a_request(), a_visitor())
    query = ServeQuery(NO_USER_TEXT, "feed", None, UNKNOWN_VISITOR)
    second = int(world.now.timestamp())
    request = AuctionRequest(a_request(), query, world.index, world.now, second, auction, is_recorded=True)
    world.auctioneer.reserve_winner(request, is_recorded=True)
    assert request.record is not None
    return request.record


def noted(world: World) -> result_cache.BidRecord:
    asked = world.auction(a_request(), a_visitor()).input
    return BidRecorder(world.states.find_reason).record(msgspec.structs.replace(asked), world.now)
