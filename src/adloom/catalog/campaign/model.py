"""A campaign: a purpose with dates, budgets and a status; its statuses and the moves between them are a table."""

# pure

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

import msgspec
from pydantic import Field

from adloom.auction.bid import BidType, compute_single_cost
from adloom.bidding.weights_card import find_shipped_doubt
from adloom.bidding.window import BidStrategy
from adloom.catalog.taxonomy.fields import ContentCategory, ProductCategory
from adloom.core.errors import BadRequestError, FieldProblem, make_field_error
from adloom.core.ids import AdvertiserId, CampaignId, UserId
from adloom.core.money import decimal_from_micros, micros_from_paisa
from adloom.resource.shapes import Paisa, PositivePrice, Price, TimeZone
from adloom.resource.soft_delete import SoftDeletable
from adloom.runtime.http.api.shapes import Flag, Moment, Name, Natural, Text, Text255
from adloom.schedule.pacing import PacingStrategy
from adloom.taxonomy.iab import load_content

CATEGORIES_MAX: Final = 50
LABELS_MAX: Final = 20
LABEL_LENGTH_MAX: Final = 50
PRICED_BY: Final = frozenset({"bid_type", "bid_amount_micros", "budget_daily_paisa", "budget_total_paisa"})
Label = Annotated[Name, Field(max_length=LABEL_LENGTH_MAX)]
DATE_INVALID: Final = "CAMPAIGN_DATE_INVALID"


class Source(StrEnum):
    """Where a banner or a campaign comes from."""

    INTERNAL = "internal"
    SPONSORED = "sponsored"
    AFFILIATE = "affiliate"
    SYSTEM = "system"


class CampaignTransitionError(BadRequestError):
    """A move that is not in the table."""

    code = "CAMPAIGN_INVALID_TRANSITION"


class CampaignStatus(StrEnum):
    """Where a campaign is on its way."""

    DRAFT = "draft"
    SCHEDULED = "scheduled"
    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"
    CANCELLED = "cancelled"


ALLOWED_MOVES: Final[Mapping[CampaignStatus, frozenset[CampaignStatus]]] = {
    CampaignStatus.DRAFT: frozenset(
        {CampaignStatus.SCHEDULED, CampaignStatus.ACTIVE, CampaignStatus.CANCELLED}
    ),
    CampaignStatus.SCHEDULED: frozenset(
        {CampaignStatus.ACTIVE, CampaignStatus.DRAFT, CampaignStatus.CANCELLED}
    ),
    CampaignStatus.ACTIVE: frozenset({CampaignStatus.PAUSED, CampaignStatus.ENDED, CampaignStatus.CANCELLED}),
    CampaignStatus.PAUSED: frozenset({CampaignStatus.ACTIVE, CampaignStatus.ENDED, CampaignStatus.CANCELLED}),
    CampaignStatus.ENDED: frozenset(),
    CampaignStatus.CANCELLED: frozenset(),
}


BEGINNING: Final = frozenset({CampaignStatus.SCHEDULED, CampaignStatus.ACTIVE})


def check_move(before: CampaignStatus, after: CampaignStatus) -> None:
    """Raise for a move that is not in the table, and say which ones are."""
    allowed = ALLOWED_MOVES[before]
    if after not in allowed:
        ways = f"It can become {', '.join(sorted(allowed))}." if allowed else "That status is final."
        raise CampaignTransitionError(f"A campaign that is {before} cannot become {after}. {ways}")


class Campaign(SoftDeletable, frozen=True, kw_only=True):
    """A purpose with dates."""

    noun_name = "campaign"

    id: CampaignId
    advertiser_id: AdvertiserId | None
    name: Name
    description: Text | None = None
    notes: Annotated[Text | None, Field(description="For those who manage it; nobody else reads them.")] = (
        None
    )
    labels: Annotated[
        tuple[Label, ...], Field(max_length=LABELS_MAX, description="To find campaigns that belong together.")
    ] = ()
    source: Source = Source.INTERNAL
    status: CampaignStatus = CampaignStatus.DRAFT
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    budget_total_paisa: Paisa | None = None
    budget_daily_paisa: Paisa | None = None
    impression_cap: Natural | None = None
    click_cap: Natural | None = None
    bid_type: BidType = BidType.CPM
    bid_amount_micros: Annotated[
        Price | None, Field(alias="bidAmount", description="Per thousand impressions, or per click.")
    ] = None
    pacing_strategy: PacingStrategy = PacingStrategy.SMOOTH
    categories: Annotated[
        tuple[ContentCategory, ...],
        Field(max_length=CATEGORIES_MAX, description="It bids on pages about these or what is below them."),
    ] = ()
    excluded_categories: Annotated[
        tuple[ContentCategory, ...],
        Field(
            max_length=CATEGORIES_MAX,
            description="It is on no page that is also about one of these, or what is below them.",
        ),
    ] = ()
    ad_product_category: Annotated[
        ProductCategory | None, Field(description="What it advertises: sites block products by it.")
    ] = None
    bids_on_unmatched: Annotated[Flag, Field(description="Whether it bids on pages without a category.")] = (
        False
    )
    target_cpa_micros: Annotated[
        PositivePrice | None, Field(alias="targetCpa", description="What a conversion should cost.")
    ] = None
    bid_strategy: BidStrategy = BidStrategy.FIXED
    passes_click_id: Annotated[
        Flag, Field(description="Whether a click gives its landing page the parameter `adloom_click`.")
    ] = False
    timezone: TimeZone = "UTC"
    advertiser_name: Text255 | None = None
    advertiser_contact: Text255 | None = None
    contract_ref: Text255 | None = None
    priority: Natural = 0
    created_by: UserId | None = None
    created_at: datetime

    def normalize(self, given: Collection[str]) -> "Campaign":
        """Return the campaign in its normal form, or raise where dates, prices or categories contradict each other.

        Prices are compared where one of them was given: an older campaign can still get another name.
        """
        check_strategy(self.bid_strategy, find_shipped_doubt)
        if not PRICED_BY.isdisjoint(given):
            self._check_budgets()
        self.check_exclusions()
        return msgspec.structs.replace(
            self,
            categories=tuple(dict.fromkeys(self.categories)),
            excluded_categories=tuple(dict.fromkeys(self.excluded_categories)),
            labels=tuple(dict.fromkeys(label.strip() for label in self.labels)),
        ).with_dates_checked()

    def check_exclusions(self) -> None:
        """Refuse to exclude what it bids for, or what is above that; what is below may be excluded."""
        taxonomy, excluded = load_content(), frozenset(self.excluded_categories)
        for category in self.categories:
            above = (category, *taxonomy.list_ancestors(category))
            node = next((one for one in above if one in excluded), None)
            if node is not None:
                wanted = "it" if node == category else f"{category} ({taxonomy.find_name(category)}) below it"
                raise make_field_error(
                    "excludedCategories",
                    f"has {node} ({taxonomy.find_name(node)}), and the campaign bids on {wanted}: no page would be "
                    f"left. Take {category} out of categories, or {node} out of excludedCategories",
                )

    def _check_budgets(self) -> None:
        """Refuse a budget that does not pay for one click or one impression: it could never be spent."""
        if not self.bid_amount_micros:
            return
        cost = compute_single_cost(self.bid_type, self.bid_amount_micros)
        what = "click" if self.bid_type is BidType.CPC else "impression"
        for field, budget in (
            ("budgetDailyPaisa", self.budget_daily_paisa),
            ("budgetTotalPaisa", self.budget_total_paisa),
        ):
            if budget is not None and micros_from_paisa(budget) < cost:
                raise make_field_error(
                    field,
                    f"does not pay for one {what}, which costs {decimal_from_micros(cost).normalize():f}: "
                    "the campaign could never be shown. Raise it, or lower bidAmount",
                )

    def with_dates_checked(self) -> "Campaign":
        """Return the campaign, or raise where its dates contradict each other."""
        if self.starts_at is not None and self.ends_at is not None and self.starts_at >= self.ends_at:
            raise _make_date_error("endsAt", "must be after startsAt")
        if self.status is CampaignStatus.SCHEDULED and self.starts_at is None:
            raise _make_date_error(
                "startsAt", "is required of a scheduled campaign", "A scheduled campaign needs a startsAt."
            )
        return self

    def is_running(self, now: datetime) -> bool:
        """Whether it may be shown at a moment, by its status and its dates."""
        has_begun = self.starts_at is None or self.starts_at <= now
        return (
            self.deleted_at is None
            and self.status is CampaignStatus.ACTIVE
            and has_begun
            and (self.ends_at is None or now < self.ends_at)
        )

    def moved_to(self, status: CampaignStatus, *, now: datetime) -> "Campaign":
        """Return the campaign in another status; raises for a move that is not in the table."""
        check_move(self.require_present().status, status)
        if status in BEGINNING and self.ends_at is not None and self.ends_at <= now:
            raise _make_date_error(
                "endsAt", "has passed, so the campaign would end at once: give a later one, or null"
            )
        return msgspec.structs.replace(self, status=status, updated_at=now).with_dates_checked()

    def scheduled(self, *, starts_at: datetime | None, ends_at: datetime | None, now: datetime) -> "Campaign":
        """Return the campaign as scheduled, with new dates where they are given."""
        dated = msgspec.structs.replace(
            self, starts_at=starts_at or self.starts_at, ends_at=ends_at or self.ends_at
        )
        return dated.moved_to(CampaignStatus.SCHEDULED, now=now)


def _make_date_error(field: str, message: str, detail: str = "") -> BadRequestError:
    problem = FieldProblem(field, message)
    return BadRequestError(detail or f"{field} {message}.", errors=[problem], code=DATE_INVALID)


def check_strategy(strategy: BidStrategy, find_doubt: Callable[[str], str | None]) -> None:
    """Refuse an agent that was never trained: it would explore with the advertiser's money."""
    doubt = find_doubt(strategy) if strategy is BidStrategy.DQN else None
    if doubt is not None:
        raise make_field_error(
            "bidStrategy",
            f"cannot be dqn here ({doubt}): an agent without training bids at random for days, with real money. "
            "Train it with `adloom learn dqn`, or choose fleet",
        )
