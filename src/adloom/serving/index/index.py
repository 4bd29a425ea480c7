"""The compiled catalog: which ads may answer a request.

An index is immutable and of one version. A newer one shares with it whatever did not change, and replaces it
whole, by one reference.
"""

# pure

import operator
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple, Protocol
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from adloom.auction.score import HEURISTIC
from adloom.core.delivery import Rotation
from adloom.core.ids import PlacementId
from adloom.core.money import Micros
from adloom.schedule.schedule import Schedule
from adloom.serving.index.contextual import ContextualCreative
from adloom.serving.index.rendered_banner import pack_ids, read_destination
from adloom.serving.index.rows import FREE, Caps, Delivery, FrequencyLimit, LeaseTerms, OfferPrice
from adloom.serving.index.site import NO_SITES, IndexedSite, SiteIndex
from adloom.targeting.bitmaps import TargetingBlock
from adloom.targeting.rules import Rule

_BUCKETS = 256
_EMPTY_BUCKET: Mapping[bytes, int | None] = {}


class Timing(msgspec.Struct, frozen=True, gc=False):
    """When a candidate may serve: its campaign's dates and its banner's schedule."""

    starts_at: datetime | None
    ends_at: datetime | None
    schedule: Schedule


class Candidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An assignment that may serve; equal parts of different candidates are the same object.

    There may be 100,000 of them, so they are small, and the garbage collector does not visit them.
    """

    pair: bytes
    campaign_key: int
    banner_key: int
    creative: bytes
    placing: (
        bytes  # Where it is not of direct delivery: its banner, as direct delivery shows it, for the tag.
    )
    timing: Timing | None  # None: always.
    rules: tuple[Rule, ...]
    price: OfferPrice = FREE
    hold: int = 0  # What an offer takes out of its lease.
    is_leased: bool = False  # Its offers need a lease of its campaign's budget.
    frequency: tuple[FrequencyLimit, ...] = ()  # How often one visitor may see its banner.


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Candidates in fill order, and the targeting that matches requests to them."""

    candidates: tuple[Candidate, ...]
    targeting: TargetingBlock
    everyone: int
    timed: tuple[int, ...]  # Positions of candidates with a timing.

    def __eq__(self, other: object) -> bool:
        # Everything else follows from the candidates.
        return isinstance(other, Block) and self.candidates == other.candidates

    def __hash__(self) -> int:
        return hash(self.candidates)


class Turn(NamedTuple):
    """Which candidates it takes turns with, those of the same tier, and how often in relation to them."""

    tier: int
    weight: int


class HasBlocks(Protocol):
    """Anything with candidates in blocks."""

    @property
    def blocks(self) -> tuple[Block, ...]: ...


class IndexedPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """A placement with its candidates in blocks: first primaries, then fallbacks, then evergreens.

    Evergreens are candidates of the others once more, without rules, for when nothing else is left.
    """

    key: int
    id: PlacementId
    slug: bytes
    is_served: bool  # Active, and filled by direct delivery.
    delivery: Delivery
    type: str
    zone: ZoneInfo
    slots_max: int
    head: bytes
    blocks: tuple[Block, ...]
    primary_blocks: int
    fallback_blocks: int
    creatives: Mapping[bytes, bytes]  # Of all assignments, live or not, by `pack_ids`.
    with_click_id: frozenset[UUID] = frozenset()  # Campaigns whose landing pages get the click's id.
    caps: Mapping[int, Caps]  # Of the candidates' campaigns, by key.
    terms: Mapping[int, LeaseTerms]  # Of the campaigns that need leases.
    is_limited: bool = False  # An offer of it may cost or count something.
    has_frequency: bool = False  # A candidate has a frequency cap.
    is_auctioned: bool = False  # Active, and filled by auction.
    is_contextual: bool = False  # Active, and filled by what the page says.
    site_key: int | None = None
    width: int | None = None
    height: int | None = None
    floor: Micros = Micros(0)
    creatives_by_banner: Mapping[UUID, ContextualCreative] = {}  # Of a campaign, if it is one's creatives.
    scoring: str = HEURISTIC  # The policy that scores its candidates in auctions.
    site: str | None = None  # The domain of its pages, where that is known.
    owner_key: int | None = None  # Its publisher.
    rotation: Rotation = Rotation.ORDERED
    turns: Mapping[bytes, Turn] = {}  # Of its candidates by `pair`, where they take turns.


MarketPlacements = tuple[IndexedPlacement, ...]
NO_MARKETS: Final[Mapping[str, MarketPlacements]] = {}


class IdTable(msgspec.Struct, frozen=True):
    """Ids, and keys of banners themselves or of the owners of campaigns, in parts: adding one copies one part and not 100,000 ids."""

    buckets: tuple[Mapping[bytes, int | None], ...] = (_EMPTY_BUCKET,) * _BUCKETS

    def has(self, thing_id: UUID) -> bool:
        written = thing_id.int.to_bytes(16, "big")  # As `bytes`, without a call of Python.
        return written in self.buckets[written[-1]]

    def find_key(self, thing_id: UUID) -> int | None:
        return self.buckets[thing_id.bytes[-1]].get(thing_id.bytes)

    def with_more(self, ids: Iterable[tuple[UUID, int | None]]) -> "IdTable":
        added: dict[int, dict[bytes, int | None]] = {}
        for one, key in ids:
            added.setdefault(one.bytes[-1], {})[one.bytes] = key
        if not added:
            return self
        buckets = list(self.buckets)
        for number, bucket in added.items():
            buckets[number] = {**buckets[number], **bucket}
        return IdTable(tuple(buckets))


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """The compiled catalog at one version."""

    version: int
    by_key: Mapping[int, IndexedPlacement]
    by_slug: Mapping[bytes, IndexedPlacement]
    by_number: Mapping[int, IndexedPlacement]  # Of their ids: to look for an id itself calls Python, twice.
    banner_ids: IdTable
    campaign_ids: IdTable
    markets: Mapping[str, MarketPlacements] = NO_MARKETS  # Auctioned placements by type.
    sites: SiteIndex = NO_SITES
    by_campaign: Mapping[UUID, IndexedPlacement] = {}  # The creatives of campaigns for contextual slots.

    def has_banner(self, banner_id: UUID) -> bool:
        """Whether such a banner exists, served or not, deleted or not."""
        return self.banner_ids.has(banner_id)

    def find_banner_key(self, banner_id: UUID) -> int | None:
        """Return the key of such a banner; None if it does not exist."""
        return self.banner_ids.find_key(banner_id)

    def has_placement(self, placement_id: UUID) -> bool:
        """Whether such a placement exists, active or not."""
        return placement_id.int in self.by_number

    def find_publisher(self, placement_id: UUID) -> int | None:
        """Return the key of a placement's publisher, deleted or not; None if it has none, or does not exist."""
        placement = self.by_number.get(placement_id.int)
        return None if placement is None else placement.owner_key

    def find_advertiser(self, campaign_id: UUID) -> int | None:
        """Return the same of a campaign's advertiser; the campaign may be deleted too."""
        return self.campaign_ids.find_key(campaign_id)

    def find_site(self, placement_id: UUID) -> str | None:
        """Return the domain of a placement's pages; None if it has no site, or does not exist."""
        placement = self.by_number.get(placement_id.int)
        return None if placement is None else placement.site

    def has_campaign(self, campaign_id: UUID) -> bool:
        """Whether such a campaign exists, running or not, deleted or not."""
        return self.campaign_ids.has(campaign_id)

    def find_slot(self, slug: bytes) -> tuple[IndexedPlacement, IndexedSite] | None:
        """Find an active contextual placement, and its site."""
        placement = self.by_slug.get(slug)
        if placement is None or not placement.is_contextual or placement.site_key is None:
            return None
        site = self.sites.by_key.get(placement.site_key)
        return None if site is None else (placement, site)

    def is_assigned(self, campaign_id: UUID | None, placement_id: UUID, banner_id: UUID) -> bool:
        """Whether a banner is assigned to a placement, live or not; with None, in any campaign."""
        placement = self.by_number.get(placement_id.int)
        if placement is None:
            return False
        if placement.delivery is Delivery.CONTEXTUAL:
            return self._has_creative(campaign_id, banner_id)
        if campaign_id is not None:
            return pack_ids(banner_id, campaign_id) in placement.creatives
        banner = banner_id.bytes
        return any(pair.startswith(banner) for pair in placement.creatives)

    def _has_creative(self, campaign_id: UUID | None, banner_id: UUID) -> bool:
        if campaign_id is not None:
            own = self.by_campaign.get(campaign_id)
            return own is not None and banner_id in own.creatives_by_banner
        return any(banner_id in own.creatives_by_banner for own in self.by_campaign.values())

    def find_destination(self, campaign_id: UUID, placement_id: UUID, banner_id: UUID) -> str | None:
        """Tell where a click on an offer leads, also when the offer would not be made any more."""
        placement = self._find_own(campaign_id, placement_id)
        creative = placement and placement.creatives.get(pack_ids(banner_id, campaign_id))
        return None if creative is None else read_destination(creative)

    def passes_click_id(self, campaign_id: UUID, placement_id: UUID) -> bool:
        """Whether the campaign's landing pages get the click's id."""
        placement = self._find_own(campaign_id, placement_id)
        return placement is not None and campaign_id in placement.with_click_id

    def _find_own(self, campaign_id: UUID, placement_id: UUID) -> IndexedPlacement | None:
        """Find what has the creatives of a campaign on a placement."""
        placement = self.by_number.get(placement_id.int)
        if placement is not None and placement.delivery is Delivery.CONTEXTUAL:
            return self.by_campaign.get(campaign_id)
        return placement


EMPTY = Index(version=-1, by_key={}, by_slug={}, by_number={}, banner_ids=IdTable(), campaign_ids=IdTable())


def replace_placements(  # noqa: PLR0913 - the parts of an index
    index: Index,
    *,
    version: int,
    gone: Iterable[int],
    placements: Iterable[IndexedPlacement],
    banner_ids: IdTable,
    campaign_ids: IdTable,
    sites: SiteIndex | None = None,
) -> Index:
    """Return a new index in which some placements are replaced."""
    by_key, by_slug, by_number = dict(index.by_key), dict(index.by_slug), dict(index.by_number)
    by_campaign = dict(index.by_campaign)
    for key in gone:
        placement = by_key.pop(key, None)
        if placement is not None and placement.key < 0:
            by_campaign.pop(placement.id, None)
        elif placement is not None:
            # Another placement may have the slug by now.
            if by_slug.get(placement.slug) is placement:
                del by_slug[placement.slug]
            del by_number[placement.id.int]
    for placement in placements:
        by_key[placement.key] = placement
        if placement.key < 0:
            by_campaign[placement.id] = placement
        else:
            by_slug[placement.slug] = by_number[placement.id.int] = placement
    return Index(
        version=version,
        by_key=by_key,
        by_slug=by_slug,
        by_number=by_number,
        banner_ids=banner_ids,
        campaign_ids=campaign_ids,
        markets=_group_markets(by_key.values(), index.markets),
        sites=index.sites if sites is None else sites,
        by_campaign=by_campaign,
    )


def _group_markets(
    placements: Iterable[IndexedPlacement], before: Mapping[str, MarketPlacements]
) -> Mapping[str, MarketPlacements]:
    """Group auctioned placements by type; an unchanged market stays the same object."""
    by_type: dict[str, list[IndexedPlacement]] = {}
    for placement in placements:
        if placement.is_auctioned:
            by_type.setdefault(placement.type, []).append(placement)
    markets: dict[str, MarketPlacements] = {}
    for kind, members in by_type.items():
        members.sort(key=operator.attrgetter("key"))
        market = before.get(kind, ())
        is_as_it_was = len(market) == len(members) and all(map(operator.is_, market, members))
        markets[kind] = market if is_as_it_was else tuple(members)
    return markets
