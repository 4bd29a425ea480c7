"""One delivery process of a simulated market: the real index, decisions, auctions, leases and pace, without HTTP."""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import msgspec

from adloom.auction.learned import LEARNED
from adloom.auction.price import compute_charge, compute_final_price
from adloom.auction.score import HEURISTIC, Heuristic, Scoring, Signals
from adloom.auction.training import Example
from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.messages import (
    AdvertiserRestored,
    CampaignExhausted,
    CampaignRestored,
    LeaseAnswer,
    LeaseUsage,
    Recall,
    SpendUpdate,
)
from adloom.core.money import Micros
from adloom.core.random import Chance
from adloom.events.frequency.counts import BannerFrequency
from adloom.forecast.click_model import SimulatedClickModel
from adloom.forecast.market import RivalPrices, SimulatedMarket, TrafficCell
from adloom.forecast.page_slots import PageSlot, SimulatedSlots
from adloom.forecast.traffic import Arrival, SeenCounts
from adloom.runtime.actors.actor import Address
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.runtime.http.fast.known_heads import Head
from adloom.serving.auction.auctioneer import Auctioneer, AuctionRequest
from adloom.serving.auction.bid_record import AuctionInput
from adloom.serving.auction.decide import WinningBid
from adloom.serving.auction.market import Market, Markets
from adloom.serving.auction.request import NO_USER_TEXT, ServeQuery, VisitorInfo, share_visitor
from adloom.serving.auction.result_cache import DecidedAuction
from adloom.serving.contextual.fill import FilledSlot
from adloom.serving.direct.encode import NO_LEASES
from adloom.serving.direct.fill import SlotFill
from adloom.serving.eligibility.caps import find_reached
from adloom.serving.eligibility.eligible_set import Exclusions
from adloom.serving.eligibility.frequency_lookup import (
    NO_BANNERS,
    NOTHING_KNOWN,
    NOTHING_SEEN,
    CappedBannerCache,
    SeenBanners,
)
from adloom.serving.eligibility.placement_state import BUDGETS, PlacementStates
from adloom.serving.index.index import Candidate, Index, IndexedPlacement
from adloom.serving.index.steps import run_steps
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.registry import Demand, collect_terms
from adloom.serving.leases.reserve import Reserver
from adloom.serving.leases.traffic_report import TrafficReport
from adloom.serving.request.context import ContextParser
from adloom.serving.request.overrides import Overrides
from adloom.targeting.context import Context

SESSION: Final = 1
REPORTS_MAX: Final = 100_000
HOUR_SECONDS: Final = 3600
_NORMAL: Final = NormalDist()


class SimulatedOffer(NamedTuple):
    """An offer that was made: where, out of which lease, and what it costs once it is seen or clicked."""

    candidate: Candidate
    placement: IndexedPlacement
    lease: int
    cost: Micros
    filled: FilledSlot | None = None  # Of a contextual slot.
    signals: Signals | None = None  # Of an auction that the click model learns from.


class _Asked(msgspec.Struct, frozen=True, gc=False):
    """What all requests of a cell share."""

    query: ServeQuery
    visitor: VisitorInfo
    slug: bytes | None
    placement_type: str | None
    direct: IndexedPlacement | None  # If direct delivery fills it.
    rivals: RivalPrices | None
    slot: PageSlot | None = None  # Of a page.


class SimulatedAuctioneer(Auctioneer):
    """Runs auctions again as the product does, with the bid from outside that takes part in all of them."""

    rival = 0

    def _find_winner(
        self, market: Market, auction_input: AuctionInput, unreserved: Collection[int]
    ) -> WinningBid | None:
        win = super()._find_winner(market, auction_input, unreserved)
        return None if win is None else raise_price(win, self.rival)


class SimulatedDelivery:
    """Answers requests, and reports its leases."""

    def __init__(
        self,
        market: SimulatedMarket,
        index: Index,
        chance: Chance,
    ) -> None:
        now = market.starts_at
        self._index = index
        self._states = states = PlacementStates()
        self.is_urgent = False
        self.leases = LocalLeases(SESSION, on_urgent=self._note_urgent, draw=chance.random)
        reserver = Reserver(states, self.leases)
        contexts = ContextParser()
        self._parse_context = contexts.parse
        self._clicks = find_click_model(market)
        policies: dict[str, Scoring] = {HEURISTIC: Heuristic()}
        if self._clicks is not None:
            policies[self._clicks.name] = self._clicks
        self._markets = Markets(states, policies=policies)
        self._markets.install(run_steps(self._markets.prepare(index, now=now)))
        if self._clicks is not None:
            self._clicks.begin(self._markets.rank)
        self._auctioneer = SimulatedAuctioneer(self._markets, contexts, reserver, states.find_reason)
        self._fill = SlotFill(states, reserver)
        self._capped = CappedBannerCache()
        self._demand = Demand(self.leases.list_placements)
        self._traffic = TrafficReport(self.leases.registry, states)
        self._seen = SeenCounts(market.visitors)
        self._slots = (
            SimulatedSlots(market, index, states, reserver, parse_context=contexts.parse, chance=chance)
            if market.pages
            else None
        )
        self._http = FastRequest(b"POST", b"/", head=Head([], {}, b""))
        self._asked = [_prepare_cell(cell, index, market.rivals, self._slots) for cell in market.cells]
        self._contexts: dict[int, Context] = {}  # By cell, in this hour.
        self._hour = 0
        self.caps = {key: caps for one in index.by_key.values() for key, caps in one.caps.items()}
        self._capped_out = frozenset[int]()  # Campaigns that have reached a cap.
        self.leases.update(collect_terms(index), at=0.0)
        self.apply_changes()

    # ------------------------------------------------------------ requests

    def serve(self, arrival: Arrival, now: datetime) -> Sequence[SimulatedOffer]:
        """Answer one request."""
        asked = self._asked[arrival.cell]
        if asked.direct is not None:
            return self._serve_direct(asked, asked.direct, arrival, now)
        if asked.slot is not None:
            return self._serve_slot(asked, asked.slot, arrival, now)
        if asked.slug is not None:
            market = self._markets.find_by_slug(self._index, asked.slug, now=now)
        else:
            market = self._markets.find_by_type(self._index, asked.placement_type or "", now=now)
        return () if market is None else self._serve_auction(asked, market, arrival, now)

    def _serve_direct(
        self, asked: _Asked, placement: IndexedPlacement, arrival: Arrival, now: datetime
    ) -> Sequence[SimulatedOffer]:
        cell, second = arrival.cell, arrival.second
        state = self._states.get(placement, now)
        if second // HOUR_SECONDS != self._hour:
            self._hour = second // HOUR_SECONDS
            self._contexts.clear()
        context = self._contexts.get(cell)
        if context is None:
            context = asked.visitor.overrides.apply_to(self._parse_context(self._http, placement.zone, now))
            self._contexts[cell] = context
        seen, visitor = NO_BANNERS, None
        if placement.has_frequency and (visitor := self._seen.find_visitor(arrival.visitor)) is not None:
            capped = self._capped.get((placement,), self._index)
            seen = capped.find_seen([BannerFrequency(*one) for one in self._seen.read(visitor, now)]).enough
        offers = self._fill.decide(state, context, second, seen)
        leases: Sequence[int] = NO_LEASES
        if placement.is_limited and offers:
            offers, leases = self._fill.reserve(state, context, offers, second, set(seen))
        if visitor is not None:
            for offer in offers:
                self._record_seen(visitor, offer.candidate, now)
        return [
            SimulatedOffer(offer.candidate, placement, lease, offer.candidate.price.cost)
            for offer, lease in zip(offers, leases, strict=False)
        ]

    def _serve_auction(
        self, asked: _Asked, market: Market, arrival: Arrival, now: datetime
    ) -> Sequence[SimulatedOffer]:
        auctioneer, index = self._auctioneer, self._index
        auctioneer.rival = 0 if asked.rivals is None else draw_rival(asked.rivals, arrival.rival)
        auction = auctioneer.decide(self._http, asked.visitor, index, market, now)
        seen, visitor = NOTHING_KNOWN, self._seen.find_visitor(arrival.visitor)
        if auction.capped_banner_ids:
            seen = self._find_seen(visitor, market, now)
            auction = auctioneer.rerun_with(auction, seen)
        win = None if auction.win is None else raise_price(auction.win, auctioneer.rival)
        if win is None:
            return ()
        if win is not auction.win:
            auction = DecidedAuction(win, auction.market, auction.input)
        request = AuctionRequest(
            self._http, asked.query, index, now, arrival.second, auction, is_recorded=False, seen=seen
        )
        if not auctioneer.reserve_winner(request, is_recorded=False):  # The next best has a frequency cap.
            request.seen = self._find_seen(visitor, market, now)
            request.auction = auctioneer.rerun_with(request.auction, request.seen)
            auctioneer.reserve_winner(request, is_recorded=False)
        auction = request.auction
        win = auction.win
        if win is None:
            return ()
        if visitor is not None:
            self._record_seen(visitor, win.bidder, now)
        placement = market.placements_by_key[win.bidder.placement_key]
        signals = None
        if self._clicks is not None:
            signals = asked.visitor.build_signals(placement.type, auction.input.contexts[0])
        return (SimulatedOffer(win.bidder, placement, request.lease, auction.cost, signals=signals),)

    def _find_seen(self, visitor: int | None, market: Market, now: datetime) -> SeenBanners:
        if visitor is None:
            return NOTHING_SEEN
        capped = self._auctioneer.find_capped_banners(market, self._index)
        return capped.find_seen([BannerFrequency(*one) for one in self._seen.read(visitor, now)])

    def _serve_slot(
        self, asked: _Asked, slot: PageSlot, arrival: Arrival, now: datetime
    ) -> Sequence[SimulatedOffer]:
        assert self._slots is not None, "a page has slots"
        seen, visitor = NO_BANNERS, self._seen.find_visitor(arrival.visitor)
        if visitor is not None and (limited := tuple(self._slots.find_capped(slot, now))):
            capped = self._capped.get(limited, self._index)
            seen = capped.find_seen([BannerFrequency(*one) for one in self._seen.read(visitor, now)]).enough
        filled = self._slots.fill(slot, asked.visitor.overrides, now, arrival.second, seen)
        if filled is None:
            return ()
        offer = filled.winner.offer
        if visitor is not None:
            self._record_seen(visitor, offer, now)
        return (SimulatedOffer(offer, slot.placement, filled.lease, filled.cost, filled),)

    def learn(self, offer: SimulatedOffer, second: int, *, is_clicked: bool) -> None:
        """Learn from what a visitor did with an ad that was seen."""
        filled, placement = offer.filled, offer.placement
        if filled is not None and self._slots is not None and placement.site_key is not None:
            site_id = self._index.sites.by_key[placement.site_key].id
            self._slots.count(filled, site_id, second, is_clicked=is_clicked)
        if offer.signals is not None and self._clicks is not None:
            own = offer.candidate
            example = Example(
                placement.key, own.banner_key, own.campaign_key, offer.signals, is_clicked=is_clicked
            )
            self._clicks.record(example, second)

    def advance(self, now: datetime) -> None:
        """Let what was learned decide, and auction pages that are due."""
        if self._slots is not None:
            self._slots.advance(self._capped_out, now)
        if self._clicks is not None:
            self._clicks.advance(int(now.timestamp()))

    def _record_seen(self, visitor: int, candidate: Candidate, now: datetime) -> None:
        if candidate.frequency:
            self._seen.record(visitor, _format_banner(candidate), now)

    # ------------------------------------------------------------ leases

    def receive(self, update: Any, now: datetime, at: float) -> None:  # noqa: ANN401 - whatever is published
        """Apply what the budget service says."""
        second = int(now.timestamp())
        if self._slots is not None:
            self._slots.receive(update, now)
        leases = self.leases
        match update:
            case LeaseAnswer():
                leases.on_answer(update, second=second, at=at)
            case Recall():
                leases.on_recall(update, second=second, at=at)
            case SpendUpdate():
                leases.on_spend_update(update.campaign_id, at=at)
            case CampaignRestored():
                leases.on_campaign_restored(update.campaign_id, at=at)
            case CampaignExhausted():
                leases.on_campaign_exhausted(update.campaign_id, at=at)
            case AdvertiserRestored():
                leases.on_advertiser_restored(update.advertiser_id, at=at)
            case _:
                pass  # An advertiser without budget: its campaigns learn it when they ask.

    def check_demand(self, at: float) -> None:
        for key in self._demand.record_requests(self._states.take_requested(), at=at):
            self.leases.on_demand(key, at=at)

    def collect_reports(self, second: int, at: float) -> list[tuple[Address, LeaseUsage]]:
        self.is_urgent = False
        reports = self.leases.collect_reports(
            second=second, at=at, most=REPORTS_MAX, is_wanted=self._demand.is_requested
        )
        return [
            (
                make_campaign_address(terms.campaign_id, terms.advertiser_id),
                self._traffic.add_to(terms, usage),
            )
            for terms, usage in reports
        ]

    def apply_changes(self) -> None:
        """Exclude the campaigns that have no lease any more, and readmit those that have one again."""
        if multipliers := self.leases.registry.take_multipliers():
            self._states.set_multipliers(multipliers)
            if self._slots is not None:
                self._slots.lower_bids(multipliers)
        if self.leases.changes:
            self._states.mark_changed(self.leases.take_changes(), source=BUDGETS)

    def exclude_capped(self, counts: Mapping[int, Any]) -> None:
        """Exclude the campaigns whose lifetime caps are reached."""
        reached = find_reached(self.caps, counts)
        self._capped_out = frozenset[int]().union(*reached.values())
        self._states.exclude(Exclusions(campaigns=reached))

    def _note_urgent(self) -> None:
        self.is_urgent = True


def find_click_model(market: SimulatedMarket) -> SimulatedClickModel | None:
    """Return the policy `learned`, if a placement is scored by it."""
    is_used = any(one.scoring == LEARNED for one in market.placements)
    return SimulatedClickModel(market.click_model) if is_used else None


def draw_rival(rivals: RivalPrices, chance: float) -> int:
    """Return what the best bid from outside is worth in micros, by one chance; 0 if there is none."""
    if chance >= rivals.share:
        return 0
    if not rivals.spread:
        return int(rivals.median)
    # One number says whether there is a rival and what it bids: every request takes the same chances.
    uniform = min(max(chance / rivals.share, 1e-9), 1 - 1e-9)
    return int(rivals.median * math.exp(rivals.spread * _NORMAL.inv_cdf(uniform)))


def raise_price(win: WinningBid, rival: int) -> WinningBid | None:
    """Let a bid from outside take part: it wins, or is the second one where it is higher than what was."""
    if win.ecpm <= rival:
        return None
    if not rival or (win.second is not None and win.second >= rival):
        return win
    final = compute_final_price(win.ecpm, second=Micros(rival), floor=win.bidder.floor)
    charge = compute_charge(win.bidder.bid, ecpm=win.ecpm, final=final)
    return msgspec.structs.replace(win, second=Micros(rival), final=final, charge=charge)


def _prepare_cell(
    cell: TrafficCell, index: Index, rivals: Mapping[bytes, RivalPrices], slots: SimulatedSlots | None
) -> _Asked:
    visitor = share_visitor(Overrides(dict(cell.visitor)))
    placement = None if cell.slug is None else index.by_slug.get(cell.slug)
    return _Asked(
        query=ServeQuery(NO_USER_TEXT, cell.placement_type, None, visitor),
        visitor=visitor,
        slug=cell.slug,
        placement_type=cell.placement_type,
        direct=placement if placement is not None and placement.is_served else None,
        rivals=None if cell.slug is None else rivals.get(cell.slug),
        slot=None
        if slots is None or cell.slug is None or cell.page is None
        else slots.find(cell.slug, cell.page),
    )


def _format_banner(candidate: Candidate) -> str:
    digits = candidate.pair[:16].hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
