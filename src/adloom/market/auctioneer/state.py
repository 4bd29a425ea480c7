"""The state of an auctioneer: its site, and the bids that it was sent."""

# pure

from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec

from adloom.auction.floor_sweep import SweepState
from adloom.budgets.messages import CheckClock
from adloom.core.ids import SiteId
from adloom.core.money import Micros
from adloom.market.approval import ApprovalRules
from adloom.market.auctioneer.select import CAMPAIGNS_A_SLOT
from adloom.market.bids import BidPrice, CategoryBids, SlotTerms, keep_first
from adloom.market.messages import BidAnswer, DemandChanged, DemandVersions, Quoted
from adloom.market.shortlist.model import Shortlist
from adloom.market.weights import DecayingCounts

PAGES_MAX: Final = 10_000
REAUCTION_EVERY: Final = timedelta(minutes=5)
CLEAN_EVERY: Final = timedelta(minutes=5)
DEBOUNCE: Final = timedelta(seconds=1)
PAGES_A_STEP: Final = 200  # Auctioned without letting other actors run.
ANSWERS_WITHIN: Final = timedelta(milliseconds=800)
ROUNDS_ANSWERED: Final = 30  # Bidders that answer late are asked every two seconds: most of a minute.
RETRY_EMPTY_AFTER: Final = timedelta(seconds=30)
RETRIES_EMPTY_MAX: Final = 3
SLOTS_OF_A_PAGE: Final = 10  # A campaign fills one slot of a page: it wants as many as it has slots, to this.


class AuctionSlot(msgspec.Struct, frozen=True):
    """A contextual placement of the site."""

    slug: str
    width: int | None
    height: int | None
    floor: Micros

    def as_group(self) -> "AuctionSlot":
        """Return what it has in common with others that want the same bids."""
        return AuctionSlot("", self.width, self.height, self.floor)


class SiteTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The site's configuration as auctions need it; blocked products have their descendants with them."""

    version: int
    domain: str
    is_suspended: bool = False
    accepts_filler: bool = True
    floor: Micros
    is_sweeping: bool = False  # Whether floors move by category, never under `floor_min`.
    floor_min: Micros = Micros(0)
    category_floors: dict[str, Micros] = {}
    slots: tuple[AuctionSlot, ...] = ()
    blocked_products: frozenset[str] = frozenset()
    blocked_domains: frozenset[str] = frozenset()

    def find_floor(self, category: str) -> Micros:
        """Return what a category costs at least; before its floor has moved that is the site's."""
        return self.category_floors.get(category, self.floor)


class PageForSale(msgspec.Struct, frozen=True, gc=False):
    """A classified page: categories with confidences, and until when it may be sold."""

    url: str
    version: int
    categories: tuple[tuple[str, float], ...]
    expires_at: datetime


class ConfigureAuctions(msgspec.Struct, frozen=True, tag="configure_auctions.v1"):
    """The site's configuration and approvals, read at one version of the catalog."""

    terms: SiteTerms
    approvals: ApprovalRules


class PagesClassified(msgspec.Struct, frozen=True, tag="pages_classified.v1"):
    """Pages that were classified or checked again; `is_all`: there are no others."""

    pages: tuple[PageForSale, ...]
    gone: tuple[str, ...] = ()
    is_all: bool = False


class WrittenShortlists(msgspec.Struct, frozen=True, gc=False):
    """What was written last for a page, and until when it may be served."""

    slots: tuple[Shortlist, ...]
    expires_at: datetime


class LoadShortlists(msgspec.Struct, frozen=True, tag="load_shortlists.v1"):
    """What was written last, with versions, so that a restart writes only what changed."""

    by_url: dict[str, WrittenShortlists]
    version: int


class LoadFloors(msgspec.Struct, frozen=True, tag="load_floors.v1"):
    """The floors that were recorded last, by category, and the last tick that they know."""

    by_category: dict[str, SweepState]
    tick: int


class FloorTick(msgspec.Struct, frozen=True, tag="floor_tick.v1"):
    """A quarter of an hour is over: impressions and revenue of the site in it, by category."""

    number: int
    results: dict[str, tuple[int, Micros]]


AuctioneerMessage: TypeAlias = (
    ConfigureAuctions
    | PagesClassified
    | LoadShortlists
    | LoadFloors
    | FloorTick
    | DemandChanged
    | DemandVersions
    | BidAnswer
    | Quoted
    | CheckClock
)


class HeldBids(msgspec.Struct, frozen=True):
    """A category's bids for each group of slots, as of a version of its demand and of the site's terms.

    Only those that a shortlist can have; `prices` are of all campaigns that may be shown, `under_floor` of some others.
    """

    version: int
    terms_version: int
    slots: tuple[CategoryBids, ...]
    prices: tuple[tuple[BidPrice, ...], ...]
    under_floor: tuple[Micros, ...]
    under_floor_limited: tuple[BidPrice, ...]
    excluded: frozenset[str]  # By any of the campaigns that a shortlist can have.


class HeldQuote(msgspec.Struct, frozen=True):
    """What is known of a category on this site and on all sites, and the weight that was drawn from it."""

    site: DecayingCounts = DecayingCounts()
    everywhere: DecayingCounts = DecayingCounts()
    weight: float = 0.5
    asked_at: datetime | None = None


class Round(msgspec.Struct, frozen=True):
    """Pages that are being auctioned: when all questions are answered, or time is up."""

    number: int
    until: datetime
    urls: tuple[str, ...]
    bids: frozenset[str]
    quotes: frozenset[tuple[str, str]]

    def is_ready(self, now: datetime) -> bool:
        return not (self.bids or self.quotes) or now >= self.until


class AuctioneerState(msgspec.Struct, frozen=True, kw_only=True):
    """One site's auctions. All of it can be rebuilt from the tables."""

    site_id: SiteId
    campaigns_max: int = CAMPAIGNS_A_SLOT
    terms: SiteTerms | None = None
    approvals: ApprovalRules = ApprovalRules()
    pages: dict[str, PageForSale] = {}
    by_category: dict[str, frozenset[str]] = {}  # URLs of the pages that may be sold under it.
    quotes: dict[str, HeldQuote] = {}
    bids: dict[str, HeldBids] = {}
    changed: frozenset[str] = (
        frozenset()
    )  # Categories whose demand has changed since their bids were asked for.
    due: frozenset[str] = frozenset()  # URLs of the next round.
    round: Round | None = None
    rounds: int = 0
    asked: tuple[int, ...] = ()  # Numbers of the last rounds under these terms, whose answers are taken.
    ran_at: datetime | None = None
    repeat_at: datetime | None = None
    clean_at: datetime | None = None
    shortlists: dict[str, WrittenShortlists] = {}
    version: int = 0
    empty: dict[str, int] = {}  # Tries of pages whose auctions brought nothing.
    empty_at: datetime | None = None
    floors: dict[str, SweepState] = {}
    tick: int = 0

    @property
    def campaigns_listed(self) -> int:
        """How many campaigns a shortlist has: all slots may be on one page."""
        slots = 0 if self.terms is None else len(self.terms.slots)
        return max(self.campaigns_max, min(slots, SLOTS_OF_A_PAGE))


def hold_bids(answer: BidAnswer, *, terms_version: int, campaigns_max: int) -> HeldBids:
    """Return what an auctioneer keeps of an answer: most of its memory would be bids that no shortlist has."""
    slots = tuple(
        CategoryBids(
            category=one.category,
            bids=keep_first(one.bids, campaigns_max),
            pending=keep_first(one.pending, campaigns_max),
            restricted=keep_first(one.restricted, campaigns_max),
            spent=keep_first(one.spent, campaigns_max),
        )
        for one in answer.slots
    )
    by_campaign = {bid.campaign_id: bid for slot in answer.slots for bid in (*slot.bids, *slot.restricted)}
    prices = {
        one: BidPrice(one, bid.cpm if bid.bid_now is None else bid.bid_now, bid.excluded_categories)
        for one, bid in by_campaign.items()
    }
    listed = (bid for one in slots for bid in (*one.bids, *one.restricted, *one.pending, *one.spent))
    return HeldBids(
        answer.version,
        terms_version,
        slots,
        tuple(
            tuple(
                sorted({prices[bid.campaign_id] for bid in (*slot.bids, *slot.restricted)}, key=_order_price)
            )
            for slot in answer.slots
        ),
        max((slot.under_floor for slot in answer.slots), key=len, default=()),
        max((slot.under_floor_limited for slot in answer.slots), key=len, default=()),
        frozenset[str]().union(*(bid.excluded_categories for bid in listed)),
    )


def _order_price(one: BidPrice) -> tuple[int, bytes]:
    return -one.cpm, one.campaign_id.bytes


def group_slots(terms: SiteTerms) -> dict[AuctionSlot, int]:
    """Return a number for all slots that ask the same of bids: most sites have few sizes and one floor."""
    groups: dict[AuctionSlot, int] = {}
    for slot in terms.slots:
        groups.setdefault(slot.as_group(), len(groups))
    return groups


def build_slot_terms(terms: SiteTerms, approvals: ApprovalRules, category: str) -> tuple[SlotTerms, ...]:
    """Return what is asked of bids of a category for each group of slots."""
    site_floor = terms.find_floor(category)
    return tuple(
        SlotTerms(
            width=slot.width,
            height=slot.height,
            floor=max(slot.floor, site_floor),
            domain=terms.domain,
            blocked_products=terms.blocked_products,
            blocked_domains=terms.blocked_domains,
            approvals=approvals,
        )
        for slot in group_slots(terms)
    )
