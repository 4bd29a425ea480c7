"""Which campaigns of a simulated market can be shown in contextual slots now, as bidders know them."""

# pure

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Final

from adloom.budgets.campaign.demand import CampaignDemand, WantedCreative, is_on_plan, round_bid_now
from adloom.budgets.messages import (
    BudgetVerdict,
    CampaignExhausted,
    CampaignRestored,
    ConfigureCampaign,
    SpendUpdate,
)
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.forecast.market import SimulatedMarket
from adloom.forecast.traffic import learn_shape
from adloom.schedule.budget_day import find_budget_day
from adloom.schedule.pacing import PacingStrategy
from adloom.schedule.traffic_shape import TrafficShape, build_day_curve
from adloom.serving.eligibility.schedule_mask import find_open_get_state
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.index import Timing
from adloom.serving.index.rows import AssignmentStatus
from adloom.targeting.values import find_landing_domain

SPENT: Final = frozenset(
    {BudgetVerdict.DAILY_BUDGET, BudgetVerdict.TOTAL_BUDGET, BudgetVerdict.ADVERTISER_BUDGET}
)
NEVER: Final = datetime.max.replace(tzinfo=UTC)


class PageDemand:
    """Campaigns that have something to show, and what keeps them from it now: money, caps, pace, bids, dates and schedules."""

    def __init__(self, market: SimulatedMarket) -> None:
        self._rows = _group_live(market.creatives)
        self._ids = {rows[0].assignment.campaign_key: campaign_id for campaign_id, rows in self._rows.items()}
        self._smooth = {
            one.id: one.config
            for one in market.campaigns
            if one.id in self._rows
            and one.config.pacing is PacingStrategy.SMOOTH
            and one.config.daily_budget is not None
        }
        self._shape = learn_shape(market.cells) or TrafficShape()
        self._spends: dict[CampaignId, SpendUpdate] = {}
        self._spent: set[CampaignId] = set()
        self._capped: Collection[int] = frozenset()
        self._paced: frozenset[CampaignId] = frozenset()
        self._multipliers: dict[CampaignId, float] = {}
        self._lowered: set[CampaignId] = set()  # Whose multipliers have changed since.
        self._until: dict[CampaignId, datetime] = {}  # When schedules may open or close, of those that do.

    def build_demands(self, now: datetime) -> list[CampaignDemand]:
        return [self._build(campaign_id, now) for campaign_id in self._rows]

    def receive(self, update: object, now: datetime) -> list[CampaignDemand]:
        """Take what the budget service says; return the campaigns that can be shown again, or no longer."""
        if isinstance(update, SpendUpdate) and update.campaign_id in self._smooth:
            self._spends[update.campaign_id] = update
        if not isinstance(update, CampaignExhausted | CampaignRestored):
            return []
        campaign_id = CampaignId(update.campaign_id)
        if campaign_id not in self._rows:
            return []
        if isinstance(update, CampaignExhausted) and update.verdict in SPENT:
            self._spent.add(campaign_id)
        else:
            self._spent.discard(campaign_id)
        return [self._build(campaign_id, now)]

    def lower_bids(self, multipliers: Mapping[int, float]) -> None:
        """Note what bids are times, by campaign."""
        found = {self._ids[key]: multiplier for key, multiplier in multipliers.items() if key in self._ids}
        self._multipliers |= found
        self._lowered.update(found)

    def advance(self, capped: Collection[int], now: datetime) -> list[CampaignDemand]:
        """Return the campaigns for which the time, their pace or a cap may have changed something."""
        paced = frozenset(self._iter_paced(now))
        changed = {
            *(self._ids[key] for key in {*capped}.symmetric_difference(self._capped) if key in self._ids),
            *(campaign_id for campaign_id, until in self._until.items() if until <= now),
            *paced.symmetric_difference(self._paced),
            *self._lowered,
        }
        self._capped, self._paced = capped, paced
        self._lowered.clear()
        return [self._build(campaign_id, now) for campaign_id in sorted(changed)]

    def _iter_paced(self, now: datetime) -> Iterator[CampaignId]:
        days: dict[str, tuple[date, float]] = {}
        for campaign_id, spend in self._spends.items():
            config = self._smooth[campaign_id]
            if config.timezone not in days:
                days[config.timezone] = self._find_share(config.timezone, now)
            day, share = days[config.timezone]
            if spend.day == day and _is_on_plan(config, spend, share, was_paced=campaign_id in self._paced):
                yield campaign_id

    def _find_share(self, timezone: str, now: datetime) -> tuple[date, float]:
        day = find_budget_day(now, timezone)
        return day.day, build_day_curve(self._shape, day.starts_at, day.ends_at).compute_share(now)

    def _build(self, campaign_id: CampaignId, now: datetime) -> CampaignDemand:
        rows = self._rows[campaign_id]
        first, terms = rows[0].assignment, rows[0].terms
        opens = [_find_open(row, now) for row in rows]
        if any(until is not None for _, until in opens) or campaign_id in self._until:
            self._until[campaign_id] = min((until for _, until in opens if until is not None), default=NEVER)
        return CampaignDemand(
            campaign_id=campaign_id,
            advertiser_id=first.advertiser_id,
            version=1,
            max_cpm=first.bid or Micros(0),
            categories=terms.categories,
            creatives=tuple(
                WantedCreative(
                    row.assignment.banner_id,
                    row.terms.width,
                    row.terms.height,
                    find_landing_domain(row.assignment.cta_url),
                    not is_open,
                )
                for row, (is_open, _) in zip(rows, opens, strict=True)
            ),
            takes_filler=terms.takes_filler,
            product_category=terms.product_category,
            blocked_domains=frozenset(terms.blocked_sites),
            excluded_categories=frozenset(terms.excluded_categories),
            is_spent=campaign_id in self._spent or first.campaign_key in self._capped,
            is_paced=campaign_id in self._paced,
            is_restricted=bool(first.rules or any(row.assignment.frequency for row in rows)),
            bid_now=round_bid_now(first.bid or Micros(0), self._multipliers.get(campaign_id, 1.0)),
        )


def _group_live(creatives: Iterable[CreativeRow]) -> Mapping[CampaignId, Sequence[CreativeRow]]:
    by_campaign: dict[CampaignId, list[CreativeRow]] = {}
    for row in creatives:
        if row.assignment.status is AssignmentStatus.LIVE:
            by_campaign.setdefault(row.assignment.campaign_id, []).append(row)
    return by_campaign


def _find_open(row: CreativeRow, now: datetime) -> tuple[bool, datetime | None]:
    one = row.assignment
    return find_open_get_state(Timing(one.starts_at, one.ends_at, one.schedule), now=now)


def _is_on_plan(config: ConfigureCampaign, spend: SpendUpdate, share: float, *, was_paced: bool) -> bool:
    assert config.daily_budget is not None, "else nothing is planned"
    return is_on_plan(spend.spent_window, config.daily_budget, share, was_paced=was_paced)
