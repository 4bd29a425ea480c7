"""Messages to and from campaigns and advertisers.

Messages may be lost, repeated or reordered. So amounts are totals rather than differences wherever
possible, senders number their messages, and only the answer to the last number counts.
"""

from datetime import date, datetime
from enum import StrEnum
from typing import Final

import msgspec

from adloom.bidding.window import BidStrategy
from adloom.budgets.bid_model import BidsDecided
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.events.log.event import BEGINNING
from adloom.schedule.pacing import PacingStrategy
from adloom.schedule.traffic_shape import TrafficShape


class BudgetVerdict(StrEnum):
    """Why a process did not get all that it asked for."""

    GRANTED = "granted"
    NOT_RUNNING = "not_running"
    DAILY_BUDGET = "daily_budget"
    TOTAL_BUDGET = "total_budget"
    ADVERTISER_BUDGET = "advertiser_budget"
    PACING = "pacing"
    IMPRESSION_CAP = "impression_cap"
    CLICK_CAP = "click_cap"


# Set in the lease of an offer that counts against an impression cap. Numbers of leases are below it until 2094.
COUNTED_LEASE: Final = 1 << 31
# In place of the lease of an offer that was made without one, because its sender was beyond its bounds.
UNHELD_LEASE: Final = COUNTED_LEASE - 1


class ChargeKind(StrEnum):
    """What confirmed a hold."""

    IMPRESSION = "impression"
    CLICK = "click"


# ---------------------------------------------------------------- to a campaign


class ConfigureCampaign(msgspec.Struct, frozen=True, kw_only=True, tag="configure_campaign.v1"):
    """The campaign as the catalog has it; older versions are ignored."""

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
    impression_cap: int | None = None
    click_cap: int | None = None
    has_bid: bool = False
    bid_strategy: BidStrategy = BidStrategy.FIXED
    target: Micros | None = None  # What a conversion, or a click, should cost.


class LeaseUsage(msgspec.Struct, frozen=True, kw_only=True, tag="usage.v1"):
    """A process reports what it gave out of a lease, and how much it asks for.

    A process has one report per campaign in flight and repeats it until it is answered. `lease` is 0 if
    it has none. If it wants less than it has, it has already set the difference aside.
    """

    session: int
    report: int
    lease: int
    given: tuple[tuple[int, int], ...] = ()
    # Of a campaign with an impression cap: how many offers were made, and how many more it asks for.
    impressions: tuple[tuple[int, int], ...] = ()
    want_impressions: int = 0
    want: Micros
    cost: Micros  # What one offer holds: grants are whole multiples of it.
    price: Micros = Micros(0)  # Of a click, where clicks are charged; their offers hold less than that.
    # A visitor was turned away for lack of it: others must return what they do not use.
    is_needed: bool = False
    requests: int = 0  # Since the last report: offers, and likely ones that the pace left out,
    offers: int = 0  # and those that were made. Older processes do not say.
    site_key: int | None = None  # Where the campaign runs on one site only.
    opportunities: int = 0  # Since the last report: requests that it could have bid on.
    shape: TrafficShape | None = None  # Of the traffic; the budget service adds it,
    day_seconds: int | None = None  # and how long the site's days are, where they are simulated.

    @property
    def report_key(self) -> tuple[int, int]:
        return self.session, self.report


class Confirm(msgspec.Struct, frozen=True, kw_only=True, tag="confirm.v1", gc=False):
    """The first valid impression or click of an offer; request id and slot are its key."""

    request_id: RequestId
    slot: int
    kind: ChargeKind
    lease: int
    second: int  # In which the offer was made.
    amount: Micros
    banner_id: BannerId
    placement_id: PlacementId
    occurred_at: datetime
    entry_id: str = BEGINNING  # Of a click: the entry of the log with which it counts.


class Confirms(msgspec.Struct, frozen=True, tag="confirms.v1"):
    """Several confirms in one message."""

    confirms: tuple[Confirm, ...]


class CountedImpressions(msgspec.Struct, frozen=True, tag="counted_impressions.v1"):
    """Counted impressions of offers that were counted against a cap: lease, second of the offer, entry of the log."""

    seen: tuple[tuple[int, int, str], ...]


class CampaignCounts(msgspec.Struct, frozen=True, kw_only=True, tag="campaign_counts.v1"):
    """What the event tables have counted in a campaign's life, up to an entry of the log."""

    impressions: int
    clicks: int
    until: str
    complete_until: int = 0  # All that was in the log by this second is included.


class CountsRequest(msgspec.Struct, frozen=True, kw_only=True, tag="counts_request.v1"):
    """A campaign asks what the event tables have counted by now."""

    campaign_id: CampaignId
    advertiser_id: AdvertiserId | None


class SessionOver(msgspec.Struct, frozen=True, kw_only=True, tag="session_over.v1"):
    """A process is gone; what it may have given counts as given at that second."""

    session: int
    second: int


class Allotment(msgspec.Struct, frozen=True, kw_only=True, tag="allotment.v1"):
    """The advertiser's answer to a report: how much of its day the campaign may commit.

    If the campaign has not reached that day yet, it starts it now: the advertiser decides on days.
    """

    sequence: int
    day: date
    allotted: Micros


class GiveBack(msgspec.Struct, frozen=True, kw_only=True, tag="give_back.v1"):
    """The advertiser asks for what the campaign does not use."""

    # It has less than it has allotted: it needs all that is not given yet, and not only what lies idle.
    is_all: bool = False


class OpenWindow(msgspec.Struct, frozen=True, kw_only=True, tag="open_window.v1"):
    """An admin opens a new daily window; the total budget is unchanged."""

    reason: str
    was_window: int | None = None  # That is open no more, if the message comes a second time.


class RefundPart(msgspec.Struct, frozen=True, kw_only=True):
    """What is given back of the charges of one hour, banner and placement."""

    day: date
    day_spent: Micros  # By the campaign on that day, as stored.
    window: int
    hour: int  # Its first second.
    banner_id: BannerId
    placement_id: PlacementId
    amount: Micros


class Refund(msgspec.Struct, frozen=True, kw_only=True, tag="refund.v1"):
    """An admin gives back charges; repeated, it is the same refund."""

    refund_id: RequestId
    parts: tuple[RefundPart, ...]

    @property
    def amount(self) -> int:
        return sum(one.amount for one in self.parts)


class CheckClock(msgspec.Struct, frozen=True, tag="look.v1"):
    """Check what is due by now: the day, holds, reports. Timers send it."""


class AskBudget(msgspec.Struct, frozen=True, tag="ask_budget.v1"):
    """Ask for the budget status."""


CampaignMessage = (
    ConfigureCampaign
    | LeaseUsage
    | Confirm
    | Confirms
    | CountedImpressions
    | CampaignCounts
    | SessionOver
    | Allotment
    | GiveBack
    | OpenWindow
    | Refund
    | BidsDecided
    | CheckClock
    | AskBudget
)


# ---------------------------------------------------------------- from a campaign


class LeaseAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="lease.v1"):
    """What a process may give until `ends_at`: `granted - given`, less what it gave since its report.

    `given` is all that it reported of this lease. An ended lease is of an earlier window: the process
    returns the rest and asks for another. Lease 0 is void: the process starts a new session.
    """

    campaign_id: CampaignId
    session: int
    report: int
    lease: int
    granted: Micros
    given: Micros
    impressions_granted: int = 0
    impressions_given: int = 0
    ends_at: datetime
    verdict: BudgetVerdict
    throttle: float = 0.0  # The share of its offers that the process leaves out.
    multiplier: float = 1.0  # Of its bids.

    @property
    def report_key(self) -> tuple[int, int]:
        return self.session, self.report


class Recall(msgspec.Struct, frozen=True, kw_only=True, tag="recall.v1"):
    """A process must return what it has not given; it reports even if it has nothing."""

    campaign_id: CampaignId
    session: int


class SpendUpdate(msgspec.Struct, frozen=True, kw_only=True, tag="spend.v1"):
    """A campaign's budgets; published after every flush and every new day."""

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
    """The campaign cannot commit more for now; published on the transition only."""

    campaign_id: CampaignId
    verdict: BudgetVerdict
    at: datetime


class CampaignRestored(msgspec.Struct, frozen=True, kw_only=True, tag="campaign_restored.v1"):
    """The campaign can commit again; published on the transition only."""

    campaign_id: CampaignId
    at: datetime


class SpendReport(msgspec.Struct, frozen=True, kw_only=True, tag="report.v1"):
    """A campaign reports to its advertiser what it spent, committed and wants.

    `incarnation` and `sequence` grow; the advertiser ignores anything older than the highest.
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
    """The advertiser as the catalog has it; older versions are ignored."""

    version: int
    advertiser_id: AdvertiserId
    is_active: bool
    daily_budget: Micros | None
    timezone: str


class AdvertiserExhausted(msgspec.Struct, frozen=True, kw_only=True, tag="advertiser_exhausted.v1"):
    """The advertiser has spent its day; published on the transition only."""

    advertiser_id: AdvertiserId
    at: datetime


class AdvertiserRestored(msgspec.Struct, frozen=True, kw_only=True, tag="advertiser_restored.v1"):
    """The advertiser has budget again; published on the transition only."""

    advertiser_id: AdvertiserId
    at: datetime


AdvertiserMessage = ConfigureAdvertiser | SpendReport | CheckClock | AskBudget


# ---------------------------------------------------------------- rows of the money ledger


class MoneyKind(StrEnum):
    """What a row of the money ledger records."""

    CHARGE = "charge"
    RELEASE = "release"  # Holds that were not confirmed in time came back.
    UNBILLED = "unbilled"  # An impression without a hold, or too late for it, when nothing was left.
    OVER_BUDGET = "over_budget"  # A click that did not fit what was left.
    OVER_CAP = "over_cap"  # A click beyond the campaign's click cap.
    REFUND = (
        "refund"  # Given back by an admin; `request_id` is the refund's, `second` that of the charged hour.
    )


class MoneyRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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


class DayRefund(msgspec.Struct, frozen=True, kw_only=True):
    """What is given back of a day that its campaign or advertiser does not know any more: a difference."""

    kind: str
    id: CampaignId | AdvertiserId
    day: date
    amount: Micros


class WaitingOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A click that waits in the stored state: the state is refused if the click is in the money ledger already."""

    request_id: RequestId
    slot: int


class DayTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign or an advertiser spent on a day: an absolute total, written with the state."""

    kind: str
    id: CampaignId | AdvertiserId
    day: date
    spent: Micros
