"""A cached auction equals one that is decided now, whatever changes."""

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
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.index import Index
from adloom.serving.index.rows import AssignmentRow
from adloom.serving.index.steps import run_steps
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.context import ContextParser
from adloom.targeting.rules import parse_rule
from tests.serving.auction.marketplace import NOON, a_row, a_slot, an_index
from tests.serving.auction.test_learned_auctions import train_learned_policy
from tests.support.for_each import for_each, seeds
from tests.support.rows import an_id

AGENTS = {
    "phone": b"Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Mobile/15E148",
    "desktop": b"Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0",
}
HEADERS = ContextParser()
CONTEXTS = (b"{}", b'{"country":"FR"}', b'{"segment":"high-intent"}', b'{"lastPurchaseDays":"3"}')


class ReplaceablePolicy:
    """A scoring policy whose model can be replaced, as in a delivery process."""

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


class CachedAuctions:
    """Runs auctions with a cache."""

    def __init__(self, index: Index) -> None:
        self.index, self.now, self.policy = index, NOON, ReplaceablePolicy()
        self.states = PlacementStates()
        self.markets = Markets(self.states, policies={HEURISTIC: Heuristic(), LEARNED: self.policy})
        reserver = Reserver(self.states, LocalLeases(1))
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
        uncached = Auctioneer(
            self.markets,
            HEADERS,
            Reserver(self.states, LocalLeases(1)),
            self.states.find_reason,
        )
        return uncached.decide(request, visitor, self.index, self.find_market(slug), self.now).win

    def exclude(self, *campaigns: int) -> None:
        self.states.mark_changed(dict.fromkeys(campaigns, "budget"))

    def readmit(self, *campaigns: int) -> None:
        self.states.mark_changed(dict.fromkeys(campaigns))


def a_request(agent: str = "desktop") -> FastRequest:
    return FastRequest(b"POST", b"/api/v1/ads/serve", headers=[(b"user-agent", AGENTS[agent])])


def a_visitor(context: bytes = b"{}") -> VisitorInfo:
    return parse_request(b'{"userId":"%b","userContext":%b}' % (str(an_id(7)).encode(), context)).visitor


def open_between(first: int, last: int) -> Schedule:
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
        schedule=open_between(10, 14)
        if chance.random() < 1 / 4
        else Schedule(status=ScheduleStatus.EVERGREEN),
    )


def a_random_index(chance: Random) -> Index:
    slots = [a_slot(1), a_slot(2, scoring=LEARNED, timezone="Asia/Kolkata")]
    return an_index([a_random_row(number, chance) for number in range(1, 13)], *slots)


@for_each("seed", seeds(24))
def test_cached_auctions_agree_with_uncached_ones(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - not a secret
    auctions = CachedAuctions(a_random_index(chance))
    winners = 0
    for step in range(60):
        match chance.choice(["exclude", "readmit", "later", "model", "index", "none", "none", "none"]):
            case "exclude":
                auctions.exclude(chance.randint(1, 12))
            case "readmit":
                auctions.readmit(chance.randint(1, 12))
            case "later":
                auctions.now += timedelta(minutes=chance.choice([1, 29, 31, 90]))
            case "model":
                auctions.policy.scoring = train_learned_policy(chance, 12, 50)
                auctions.policy.scoring.version = step + 1
            case "index" if chance.random() < 1 / 3:
                auctions.index = a_random_index(chance)
            case _:
                pass
        for _ in range(4):
            request, visitor = a_request(chance.choice(list(AGENTS))), a_visitor(chance.choice(CONTEXTS))
            slug = chance.choice([None, "slot-1", "slot-2"])
            auction = auctions.auction(request, visitor, slug)

            assert auction.win == auctions.decide_uncached(request, visitor, slug)
            winners += auction.win is not None
    assert winners, "some auctions have a winner"


def test_visitors_with_equal_contexts_share_an_auction() -> None:
    auctions = CachedAuctions(an_index([a_row(1, "3"), a_row(2, "2")]))

    first = auctions.auction(a_request(), a_visitor())

    assert auctions.auction(a_request(), a_visitor()) is first
    assert auctions.auction(a_request("phone"), a_visitor()) is not first
    assert auctions.auction(a_request(), a_visitor(b'{"country":"FR"}')) is not first


def test_a_cached_auction_survives_changes_in_other_markets() -> None:
    slots = [a_slot(1), a_slot(2, placement_type="story")]
    auctions = CachedAuctions(an_index([a_row(1, "3"), a_row(2, "2", placement_key=2)], *slots))
    first = auctions.auction(a_request(), a_visitor())

    auctions.exclude(2)

    assert auctions.auction(a_request(), a_visitor()) is first


def test_the_record_follows_changes_that_do_not_change_the_result() -> None:
    rows = [a_row(1, "9"), a_row(2, "8"), a_row(3, "0.01", placement_key=2)]
    auctions = CachedAuctions(an_index(rows, a_slot(1), a_slot(2)))
    first = auctions.auction(a_request(), a_visitor())
    before = reserve_and_record(auctions)

    auctions.exclude(3)

    assert auctions.auction(a_request(), a_visitor()) is first
    assert (before.bid_count, reserve_and_record(auctions).bid_count) == (3, 2)


def test_a_cached_auction_ends_when_its_placement_state_is_replaced() -> None:
    auctions = CachedAuctions(an_index([a_row(1, "3"), a_row(2, "2")]))
    first = auctions.auction(a_request(), a_visitor())
    assert first.win is not None
    [placement] = auctions.index.by_key.values()

    auctions.states.install(auctions.index, [run_steps(auctions.states.prepare(placement, now=auctions.now))])
    auctions.markets.install({})
    auctions.exclude(first.win.bidder.campaign_key)

    second = auctions.auction(a_request(), a_visitor()).win
    assert second is not None
    assert second.bidder.campaign_key == 2


def test_bids_are_recorded_once_for_requests_that_share_an_auction() -> None:
    auctions = CachedAuctions(an_index([a_row(1, "3"), a_row(2, "2"), a_row(3, "1")]))
    first, second = (reserve_and_record(auctions) for _ in range(2))
    auctions.exclude(1)
    third = reserve_and_record(auctions)

    assert first.bids == second.bids != third.bids
    assert (first.examined_count, second.examined_count, third.examined_count) == (3, 0, 3)
    assert third == record_uncached(auctions)


def test_the_least_recently_used_auctions_are_evicted() -> None:
    auctions = CachedAuctions(an_index([a_row(1, "3")]))
    first = auctions.auction(a_request(), a_visitor(b'{"segment":"s-0"}'))
    for number in range(1, result_cache.AUCTIONS_MAX):
        auctions.auction(a_request(), a_visitor(b'{"segment":"s-%d"}' % number))
    refreshed = auctions.auction(a_request(), a_visitor(b'{"segment":"s-0"}'))
    auctions.auction(a_request(), a_visitor(b'{"segment":"one more"}'))

    assert refreshed is first
    assert auctions.auction(a_request(), a_visitor(b'{"segment":"s-0"}')) is not first


def reserve_and_record(auctions: CachedAuctions) -> result_cache.BidRecord:
    auction = auctions.auction(a_request(), a_visitor())
    query = ServeQuery(NO_USER_TEXT, "feed", None, UNKNOWN_VISITOR)
    second = int(auctions.now.timestamp())
    request = AuctionRequest(
        a_request(), query, auctions.index, auctions.now, second, auction, is_recorded=True
    )
    auctions.auctioneer.reserve_winner(request, is_recorded=True)
    assert request.record is not None
    return request.record


def record_uncached(auctions: CachedAuctions) -> result_cache.BidRecord:
    auction = auctions.auction(a_request(), a_visitor()).input
    return BidRecorder(auctions.states.find_reason).record(msgspec.structs.replace(auction), auctions.now)
