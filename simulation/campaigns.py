"""The simulated catalog: campaigns and their advertiser, with every version that there was."""

from collections import defaultdict
from collections.abc import Sequence
from random import Random  # noqa: TID251 - for its type
from typing import Final, Literal
from uuid import UUID

import msgspec

from adloom.auction.bid import BidType
from adloom.bidding.window import BidStrategy
from adloom.budgets.addresses import make_advertiser_address, make_campaign_address
from adloom.budgets.config.configuration import AdvertiserRow, CampaignRow
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, IdSource, PlacementId
from adloom.core.money import IMPRESSIONS_PER_CPM, Micros, micros_from_paisa
from adloom.events.log.event import ChargedBy
from adloom.runtime.actors.actor import Address
from adloom.schedule.pacing import PacingStrategy
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import Index
from adloom.serving.index.rows import (
    AssignmentRow,
    AssignmentStatus,
    Caps,
    Delivery,
    OfferPrice,
    PlacementRow,
    Snapshot,
)
from simulation.tables import CatalogKeys

PLACEMENT_KEY: Final = 1
AUCTION_KEY: Final = 2  # Of a placement that the same campaigns bid for.
SLUG: Final = "home"
AUCTION_SLUG: Final = b"auctioned"
ADVERTISER_KEY: Final = 1
FLOORS: Final = (Micros(0), Micros(0), Micros(150_000), Micros(5_000_000))
WITHOUT_BOUND: Final = 1 << 62
COSTS: Final = (Micros(10_000), Micros(10_000), Micros(7_000), Micros(3_000))
BUDGETS_PAISA: Final = (0, 1, 2, 5, 10, 40, 100)
AMPLE_PAISA: Final = (5, 40, 100, 120)
CAPS: Final = (0, 1, 3, 10, 40)

Limit = tuple[Literal["daily", "total", "payer"], UUID]

_changed = msgspec.structs.replace


class Selling(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign with its one banner, at some version."""

    key: int
    id: CampaignId
    banner_id: BannerId
    payer_id: AdvertiserId | None
    price: OfferPrice
    timezone: str
    is_active: bool = True
    daily_paisa: int | None = None
    total_paisa: int | None = None
    pacing: PacingStrategy = PacingStrategy.ACCELERATED
    impression_cap: int | None = None
    click_cap: int | None = None
    strategy: BidStrategy = BidStrategy.FIXED

    @property
    def bid_type(self) -> BidType:
        return BidType.CPC if self.price.charged_by is ChargedBy.CLICK else BidType.CPM

    @property
    def bid(self) -> Micros:
        return (
            self.price.cost if self.bid_type is BidType.CPC else Micros(self.price.cost * IMPRESSIONS_PER_CPM)
        )

    @property
    def is_capped(self) -> bool:
        return self.impression_cap is not None or self.click_cap is not None

    @property
    def address(self) -> Address:
        return make_campaign_address(self.id, self.payer_id)


class SimulatedCampaigns:
    """The catalog of one run; old versions are kept, so that laws can ask what was allowed when."""

    def __init__(  # noqa: PLR0913 - what worlds differ in
        self,
        ids: IdSource,
        chance: Random,
        *,
        campaigns: int,
        zone: str = "UTC",
        has_payer: bool = False,
        has_budgets: bool = True,
        capped: float = 0.0,
        learning: float = 0.0,
    ) -> None:
        self._chance = chance
        self._has_budgets = has_budgets
        self.version = 1
        self.placement_id = PlacementId(ids.make())
        self.auction_placement_id = PlacementId(ids.make())
        self._floor = chance.choice(FLOORS)
        self.payers: dict[AdvertiserId, AdvertiserRow] = {}
        self.campaigns: dict[CampaignId, Selling] = {}
        self.changes: list[tuple[int, Address]] = []
        self._bounds: defaultdict[Limit, list[tuple[int, int]]] = defaultdict(list)  # With their versions.
        self._index: Index | None = None
        payer_id = AdvertiserId(ids.make()) if has_payer else None
        if payer_id is not None:
            daily = self._chance.choice([None, *BUDGETS_PAISA])
            self.put_payer(
                AdvertiserRow(id=payer_id, is_deleted=False, daily_budget_paisa=daily, timezone=zone)
            )
        for number in range(campaigns):
            self.put(
                Selling(
                    key=10 + number,
                    id=CampaignId(ids.make()),
                    banner_id=BannerId(ids.make()),
                    payer_id=payer_id,
                    price=OfferPrice(chance.choice(COSTS), chance.choice([*ChargedBy, ChargedBy.IMPRESSION])),
                    timezone=zone,
                    daily_paisa=self._draw_budget(),
                    total_paisa=None if chance.random() < 0.5 else self._draw_budget(5),  # noqa: PLR2004 - as often as not
                    pacing=chance.choice([PacingStrategy.ACCELERATED, *PacingStrategy]),
                )
            )
        for one in list(self.campaigns.values()) if learning else ():
            if chance.random() < learning:
                self.campaigns[one.id] = _changed(
                    one, strategy=chance.choice([BidStrategy.PACER, BidStrategy.FLEET])
                )
        for one in list(self.campaigns.values()) if capped else ():
            if chance.random() < capped:
                self.put(self._draw_cap(one))

    # ------------------------------------------------------------ what people do

    def put(self, campaign: Selling) -> None:
        self.version += 1
        self.campaigns[campaign.id] = campaign
        self._bounds["daily", campaign.id].append((self.version, _compute_bound(campaign.daily_paisa)))
        self._bounds["total", campaign.id].append((self.version, _compute_bound(campaign.total_paisa)))
        self.changes.append((self.version, campaign.address))
        self._index = None

    def put_payer(self, payer: AdvertiserRow) -> None:
        """Its campaigns change with it."""
        self.version += 1
        payer_id = AdvertiserId(payer.id)
        self.payers[payer_id] = payer
        self._bounds["payer", payer.id].append((self.version, _compute_bound(payer.daily_budget_paisa)))
        self.changes.append((self.version, make_advertiser_address(payer_id)))
        self.changes += [
            (self.version, one.address) for one in self.campaigns.values() if one.payer_id == payer.id
        ]
        self._index = None

    def change_something(self) -> None:
        """Raise or lower a budget, pause, resume, or change the pacing."""
        chance = self._chance
        one = self.campaigns[chance.choice(list(self.campaigns))]
        match chance.randrange(6):
            case 0 | 1:
                self.put(_changed(one, daily_paisa=self._draw_budget()))
            case 2:
                self.put(_changed(one, total_paisa=self._draw_budget(5)))
            case 3:
                self.put(_changed(one, is_active=not one.is_active))
            case 4 if one.payer_id is not None:
                budget = chance.choice([None, *BUDGETS_PAISA])
                self.put_payer(_changed(self.payers[one.payer_id], daily_budget_paisa=budget))
            case _:
                self.put(_changed(one, pacing=chance.choice(list(PacingStrategy))))

    def open_all(self) -> None:
        """Let all campaigns run unpaced, most of them with budget left."""
        chance = self._chance
        for payer in list(self.payers.values()):
            self.put_payer(_changed(payer, daily_budget_paisa=chance.choice([None, *AMPLE_PAISA])))
        for one in list(self.campaigns.values()):
            self.put(
                _changed(
                    one,
                    is_active=True,
                    pacing=PacingStrategy.ACCELERATED,
                    daily_paisa=chance.choice(AMPLE_PAISA),
                    total_paisa=chance.choice([None, one.total_paisa, 2 * AMPLE_PAISA[-1]]),
                )
            )

    def _draw_cap(self, one: Selling) -> Selling:
        """Cap impressions, or clicks where they are paid for; caps stay as they are."""
        cap = self._chance.choice(CAPS)
        if one.bid_type is BidType.CPC and self._chance.random() < 0.5:  # noqa: PLR2004 - as often as not
            return _changed(one, click_cap=cap)
        return _changed(one, impression_cap=cap)

    def _draw_budget(self, times: int = 1) -> int | None:
        budget = self._chance.choice([None, *BUDGETS_PAISA, *BUDGETS_PAISA])
        return None if budget is None or not self._has_budgets else budget * times

    # ------------------------------------------------------------ what was allowed

    def find_most(self, limit: Limit, since: int, until: int) -> int:
        """Return the highest bound that was in force at `since`, or came until `until`."""
        bounds = self._bounds[limit]
        before = [bound for version, bound in bounds if version <= since]
        found = [bound for version, bound in bounds if since < version <= until]
        return max([*before[-1:], *found] or [bounds[0][1]])

    # ------------------------------------------------------------ what processes read

    def build_row(self, campaign_id: CampaignId) -> CampaignRow:
        one = self.campaigns[campaign_id]
        return CampaignRow(
            id=one.id,
            advertiser=None if one.payer_id is None else self.payers[one.payer_id],
            status="active" if one.is_active else "paused",
            is_deleted=False,
            starts_at=None,
            ends_at=None,
            budget_daily_paisa=one.daily_paisa,
            budget_total_paisa=one.total_paisa,
            pacing_strategy=one.pacing.value,
            timezone=one.timezone,
            impression_cap=one.impression_cap,
            click_cap=one.click_cap,
            bid_amount_micros=None if one.strategy is BidStrategy.FIXED else one.bid,
            bid_strategy=one.strategy.value,
        )

    def list_keys(self) -> CatalogKeys:
        campaigns = self.campaigns.values()
        return CatalogKeys(
            banners={one.banner_id.int: one.key for one in campaigns},
            placements={self.placement_id.int: PLACEMENT_KEY, self.auction_placement_id.int: AUCTION_KEY},
            campaigns={one.id.int: one.key for one in campaigns},
        )

    def build_index(self) -> Index:
        if self._index is None:
            self._index = compile_index(self._build_snapshot())
        return self._index

    def _build_snapshot(self) -> Snapshot:
        campaigns = list(self.campaigns.values())
        placement = PlacementRow(
            key=PLACEMENT_KEY,
            id=self.placement_id,
            slug=SLUG,
            label="Home",
            layout_type="full_slider",
            max_banners=len(campaigns),
            is_active=True,
            fallback_placeholder_url=None,
            allow_partial_render=True,
        )
        auctioned = _changed(
            placement,
            key=AUCTION_KEY,
            id=self.auction_placement_id,
            slug=AUCTION_SLUG.decode(),
            delivery=Delivery.AUCTION,
            floor=self._floor,
        )
        return Snapshot(
            version=self.version,
            placements=[placement, auctioned],
            assignments=[
                self._build_assignment(one, placement_key)
                for placement_key in (PLACEMENT_KEY, AUCTION_KEY)
                for one in campaigns
            ],
            banner_ids=[one.banner_id for one in campaigns],
            campaign_ids=[one.id for one in campaigns],
        )

    def _build_assignment(self, one: Selling, placement_key: int) -> AssignmentRow:
        payer = None if one.payer_id is None else self.payers[one.payer_id]
        limits: Sequence[int | None] = (
            one.daily_paisa,
            one.total_paisa,
            None if payer is None else payer.daily_budget_paisa,
        )
        return AssignmentRow(
            placement_key=placement_key,
            campaign_id=one.id,
            banner_id=one.banner_id,
            campaign_key=one.key,
            banner_key=one.key,
            status=AssignmentStatus.LIVE if one.is_active else AssignmentStatus.CAMPAIGN_PAUSED,
            advertiser_id=one.payer_id,
            advertiser_key=None if one.payer_id is None else ADVERTISER_KEY,
            price=one.price,
            bid_type=one.bid_type,
            bid=one.bid,
            is_limited=any(limit is not None for limit in limits),
            caps=Caps(one.impression_cap, one.click_cap) if one.is_capped else None,
            display_order=one.key,
            title=f"Banner {one.key}",
            primary_image_url="https://cdn.example/banner.png",
            cta_url="https://shop.example/",
        )


def _compute_bound(paisa: int | None) -> int:
    return WITHOUT_BOUND if paisa is None else micros_from_paisa(paisa)
