"""What is said to campaigns and advertisers, and what they say.

Everything may be lost, come twice, or be overtaken. So amounts are totals and not differences
wherever they can be, whoever speaks numbers what it says, and only an answer to the last number counts.
"""

from datetime import date, datetime
from enum import StrEnum

import msgspec

from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.schedule.pacing import PacingStrategy


class BudgetVerdict(StrEnum):
    """Why a process has not got all that it wanted."""

    GRANTED = "granted"
    NOT_RUNNING = "not_running"
    DAILY_BUDGET = "daily_budget"
    TOTAL_BUDGET = "total_budget"
    ADVERTISER_BUDGET = "advertiser_budget"
    PACING = "pacing"


class ChargeKind(StrEnum):
    """What confirmed a hold."""

    IMPRESSION = "impression"
    CLICK = "click"


# ---------------------------------------------------------------- to a campaign


class ConfigureCampaign(msgspec.Struct, frozen=True, kw_only=True, tag="configure_campaign.v1"):
    """The catalog says what the campaign is; an older version than the last is ignored."""

    version: int
    campaign_id: CampaignId
    advertiser_id: AdvertiserId | None
    is_running: bool
    daily_budget: Micros | None
    total_budget: Micros | None
    pacing: PacingStrategy
    timezone: str
    hold_seconds: int
    # Whether the advertiser has a budget of its own: then every grant needs an allotment.
    is_allotted: bool


class LeaseUsage(msgspec.Struct, frozen=True, kw_only=True, tag="usage.v1"):
    """A process reports what it has given out of a lease, and says what it wants to have to give.

    A process has one report under way a campaign and repeats it until it is answered. `lease` is 0
    where it has none. What it wants less than it has, it has already set aside.
    """

    session: int
    report: int
    lease: int
    given: tuple[tuple[int, int], ...] = ()
    want: Micros
    cost: Micros  # Of one offer: grants are whole multiples of it.
    # Somebody was turned away for lack of it: others shall return what they do not use.
    is_needed: bool = False


class Confirm(msgspec.Struct, frozen=True, kw_only=True, tag="confirm.v1"):
    """An offer was seen or clicked, for the first time and validly; request id and slot are its exact key."""

    request_id: RequestId
    slot: int
    kind: ChargeKind
    lease: int
    second: int  # In which the offer was made.
    amount: Micros
    banner_id: BannerId
    placement_id: PlacementId
    occurred_at: datetime


class Confirms(msgspec.Struct, frozen=True, tag="confirms.v1"):
    """Several of them at one touch, as whoever folds events in batches has them."""

    confirms: tuple[Confirm, ...]


class SessionOver(msgspec.Struct, frozen=True, kw_only=True, tag="session_over.v1"):
    """A process is gone; what it may have given out counts as given at that second."""

    session: int
    second: int


class Allotment(msgspec.Struct, frozen=True, kw_only=True, tag="allotment.v1"):
    """The advertiser says how much of its day the campaign may commit, in answer to a report.

    A day that the campaign has not reached yet it begins now: days are the advertiser's.
    """

    sequence: int
    day: date
    allotted: Micros


class GiveBack(msgspec.Struct, frozen=True, kw_only=True, tag="give_back.v1"):
    """The advertiser needs what the campaign does not use."""

    # It has less than it has allotted: it needs all that is not given yet, and not only what lies idle.
    is_all: bool = False


class OpenWindow(msgspec.Struct, frozen=True, kw_only=True, tag="open_window.v1"):
    """An admin opens a new daily window; the total budget stays as it is."""

    reason: str


class CheckClock(msgspec.Struct, frozen=True, tag="look.v1"):
    """Look at the clock: the day, holds, reports. Timers send it, and so does whoever wants to know."""


class AskBudget(msgspec.Struct, frozen=True, tag="ask_budget.v1"):
    """Tell how the budget stands."""


CampaignMessage = (
    ConfigureCampaign
    | LeaseUsage
    | Confirm
    | Confirms
    | SessionOver
    | Allotment
    | GiveBack
    | OpenWindow
    | CheckClock
    | AskBudget
)


# ---------------------------------------------------------------- from a campaign


class LeaseAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="lease.v1"):
    """What a process may give until `ends_at`: `granted - given`, less what it has given since its report.

    `given` is what it has reported of this lease in all. A lease that has ended is of an earlier window: the process returns what it has left, and asks for
    another. Lease 0 is void: the process stops giving, and begins a new session.
    """

    campaign_id: CampaignId
    session: int
    report: int
    lease: int
    granted: Micros
    given: Micros
    ends_at: datetime
    verdict: BudgetVerdict


class Recall(msgspec.Struct, frozen=True, kw_only=True, tag="recall.v1"):
    """A process shall return what it has not given; it reports even where it has nothing."""

    campaign_id: CampaignId
    session: int


class SpendUpdate(msgspec.Struct, frozen=True, kw_only=True, tag="spend.v1"):
    """How a campaign stands; said after every flush and every roll, whether anything changed or not."""

    campaign_id: CampaignId
    advertiser_id: AdvertiserId | None
    day: date
    window: int
    daily_budget: Micros | None
    total_budget: Micros | None
    spent_window: Micros
    spent_today: Micros
    spent_total: Micros
    held: Micros
    leased: Micros
    at: datetime


class CampaignExhausted(msgspec.Struct, frozen=True, kw_only=True, tag="campaign_exhausted.v1"):
    """The campaign cannot commit any more for now; said on the transition only."""

    campaign_id: CampaignId
    verdict: BudgetVerdict
    at: datetime


class CampaignRestored(msgspec.Struct, frozen=True, kw_only=True, tag="campaign_restored.v1"):
    """The campaign can commit again; said on the transition only."""

    campaign_id: CampaignId
    at: datetime


class SpendReport(msgspec.Struct, frozen=True, kw_only=True, tag="report.v1"):
    """A campaign tells its advertiser what it has spent on a day, what it has committed, and what it wants.

    `incarnation` and `sequence` grow; the advertiser keeps the highest and ignores what is older.
    """

    campaign_id: CampaignId
    incarnation: int
    sequence: int
    day: date
    spent_by_day: dict[date, int]  # Of today, and of days of which something may still be charged.
    committed: Micros  # Spent today and outstanding: never to be taken away.
    target: Micros  # What it would like to be allotted in all; less than before is a return.
    cost: Micros  # Of one offer: less than that is of no use.
    is_needed: bool = False


# ---------------------------------------------------------------- to and from an advertiser


class ConfigureAdvertiser(msgspec.Struct, frozen=True, kw_only=True, tag="configure_advertiser.v1"):
    """The catalog says what the advertiser is; an older version than the last is ignored."""

    version: int
    advertiser_id: AdvertiserId
    is_active: bool
    daily_budget: Micros | None
    timezone: str
    blocked_sites: tuple[str, ...] = ()


class AdvertiserExhausted(msgspec.Struct, frozen=True, kw_only=True, tag="advertiser_exhausted.v1"):
    """The advertiser has spent its day; said on the transition only."""

    advertiser_id: AdvertiserId
    at: datetime


class AdvertiserRestored(msgspec.Struct, frozen=True, kw_only=True, tag="advertiser_restored.v1"):
    """The advertiser has a budget again; said on the transition only."""

    advertiser_id: AdvertiserId
    at: datetime


AdvertiserMessage = ConfigureAdvertiser | SpendReport | CheckClock | AskBudget


# ---------------------------------------------------------------- rows of the money ledger


class MoneyKind(StrEnum):
    """What a row of the money ledger is about."""

    CHARGE = "charge"
    RELEASE = "release"  # Holds that were not confirmed in time came back.
    UNBILLED = "unbilled"  # Confirmed too late, when nothing was left.


class MoneyRow(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the money ledger."""

    kind: MoneyKind
    campaign_id: CampaignId
    advertiser_id: AdvertiserId | None
    day: date
    window: int
    amount: Micros
    at: datetime
    lease: int
    second: int
    request_id: RequestId | None = None
    slot: int | None = None
    confirmed_by: ChargeKind | None = None
    banner_id: BannerId | None = None
    placement_id: PlacementId | None = None


class DayTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign, or an advertiser, has spent on a day: written whole, with the state."""

    kind: str
    id: CampaignId | AdvertiserId
    day: date
    spent: Micros
