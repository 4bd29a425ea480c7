"""The state of a campaign's budget."""

# pure

from datetime import date, datetime
from typing import Final

import msgspec

from adloom.budgets.bid_model import BidProgress
from adloom.budgets.campaign.lease import Lease
from adloom.budgets.messages import BudgetVerdict, CampaignCounts, ConfigureCampaign, Confirm, MoneyRow
from adloom.core.ids import RequestId
from adloom.core.money import Micros
from adloom.events.log.event import BEGINNING, parse_entry_id
from adloom.schedule.budget_day import BudgetDay, build_budget_day, find_budget_day
from adloom.schedule.pace_control import PaceState

NOTHING: Final = Micros(0)
FIRST_SECOND: Final = 1_767_225_600  # Of 2026: numbers of leases count from there, and fit into four bytes.


class PendingReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report to the advertiser that is not answered yet."""

    attempts: int
    again_at: datetime


class WaitingConfirm(msgspec.Struct, frozen=True):
    """A click, or an impression without a hold, that fits the campaign's own budgets, and waits for its advertiser's."""

    confirm: Confirm
    until: datetime


class CampaignState(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign has committed and spent; `buffer` is spent and not in the money ledger yet."""

    config: ConfigureCampaign | None = None
    incarnation: int = 0
    day: date = date.min
    window: int = 0
    spent_window: Micros = NOTHING
    spent_total: Micros = NOTHING
    # Of today, and of days whose leases are not settled yet.
    spent_by_day: dict[date, int] = {}
    leases: dict[int, Lease] = {}
    leases_made: int = 0
    # Of an impression cap: by lease, offers in place of micros.
    offers: dict[int, Lease] = {}
    counted: CampaignCounts | None = None  # As the event tables say,
    seen: tuple[str, ...] = ()  # and the later entries that we were sent,
    seen_until: str = BEGINNING  # up to this one.
    clicked: int = 0  # Clicks that were confirmed since there is a click cap,
    clicked_before: int | None = None  # others, as the tables first said,
    clicked_until: str = BEGINNING  # up to this entry,
    clicked_entries: tuple[str, ...] = ()  # and entries that were confirmed before they said so.
    sessions_over: dict[int, int] = {}  # Since which second: what they said before may still arrive.
    held_since: int | None = None  # No hold is of an earlier second.
    released_until: int = 0  # Holds of this second and before have come back.
    offers_held_since: int | None = None  # The same of the offers of an impression cap,
    offers_released_until: int = 0  # which come back when it is known how many were seen.
    counts_asked_second: int = 0  # In which the counts were last asked for.
    cost: Micros = NOTHING  # What an offer holds, as last reported: a remainder below it cannot be used.
    price: Micros = NOTHING  # Of a click, where clicks are charged.
    waiting: tuple[WaitingConfirm, ...] = msgspec.field(
        default=(), name="clicks"
    )  # Stored before impressions could.
    needed_second: int = 0  # In which a process last turned a visitor away.
    asked_second: int = 0  # In which the advertiser was last asked for more.
    allotted: Micros = NOTHING  # By the advertiser, for `day`.
    wanted: Micros = NOTHING  # Of the advertiser, beyond what is committed.
    is_giving_back: bool = False  # The advertiser needs what we do not use.
    sequence: int = 0
    report: PendingReport | None = None
    has_news: bool = False  # For the advertiser, since that report.
    buffer: tuple[MoneyRow, ...] = ()
    flush_at: datetime | None = None
    exhausted: BudgetVerdict | None = None
    refunds: tuple[RequestId, ...] = ()  # The last ones.
    pace: PaceState | None = None  # Of smooth pacing.
    bids: BidProgress | None = None  # Of a campaign with a bid.
    site_key: int | None = None  # Whose traffic it follows, where it runs on one site only.

    @property
    def configured(self) -> ConfigureCampaign:
        """The configuration; a campaign without one handles no message."""
        assert self.config is not None
        return self.config

    @property
    def spent_today(self) -> Micros:
        """Of today's budget, over all windows that an admin has opened."""
        return Micros(self.spent_by_day.get(self.day, 0))

    @property
    def outstanding(self) -> Micros:
        return Micros(sum(lease.outstanding for lease in self.leases.values()))

    @property
    def outstanding_of_window(self) -> Micros:
        return Micros(sum(lease.outstanding for lease in self.leases.values() if lease.window == self.window))

    @property
    def firm(self) -> Micros:
        """What is outstanding of leases by impression: it will be charged if it is confirmed in time."""
        return Micros(sum(lease.outstanding for lease in self.leases.values() if not lease.is_by_click))

    @property
    def firm_of_window(self) -> Micros:
        leases = self.leases.values()
        return Micros(
            sum(one.outstanding for one in leases if not one.is_by_click and one.window == self.window)
        )

    @property
    def firm_today(self) -> Micros:
        """What of the advertiser's day is spent, or will be if it is confirmed in time."""
        leases = self.leases.values()
        firm = sum(one.outstanding for one in leases if not one.is_by_click and one.day == self.day)
        return Micros(self.spent_today + firm)

    @property
    def committed_today(self) -> Micros:
        """What of the advertiser's day is spent, or may still be.

        Holds of clicks guarantee no charge: they count as far as they are allotted, if that pays for a click
        and a click cap leaves one.
        """
        leased = sum(lease.outstanding for lease in self.leases.values() if lease.day == self.day)
        committed = Micros(self.spent_today + leased)
        if self.config is None or not self.config.is_allotted:
            return committed
        firm = self.firm_today
        is_paid = self.allotted >= firm + max(1, self.price) and self.has_click_left
        return min(committed, self.allotted) if is_paid else firm

    @property
    def has_click_left(self) -> bool:
        """Whether another click is within the click cap."""
        cap = self.configured.click_cap
        if cap is None:
            return True
        if self.clicked_before is not None:
            return self.clicked + self.clicked_before < cap
        if self.counted is None:
            return self.clicked < cap
        until = parse_entry_id(self.counted.until)
        later = sum(parse_entry_id(entry_id) > until for entry_id in self.clicked_entries)
        return max(self.clicked, self.counted.clicks + later) < cap

    @property
    def offer_price(self) -> Micros:
        """The least that a budget needs for another offer: a click, where clicks are charged."""
        return Micros(max(1, self.cost, self.price))

    @property
    def held(self) -> Micros:
        """What is on hold; charges ahead of their report never were."""
        return Micros(sum(lease.holding + lease.ahead for lease in self.leases.values()))

    @property
    def leased(self) -> Micros:
        """What processes can still give, as far as they have reported."""
        return Micros(sum(lease.unassigned - lease.ahead for lease in self.leases.values()))

    def find_lease(self, session: int, *, is_by_click: bool = False) -> Lease | None:
        """Return the open lease of a process in this window."""
        for lease in self.leases.values():
            is_open = lease.window == self.window and lease.closed_second is None
            if lease.session == session and is_open and lease.is_by_click == is_by_click:
                return lease
        return None

    def with_lease(self, lease: Lease) -> "CampaignState":
        return msgspec.structs.replace(self, leases={**self.leases, lease.number: lease})


def make_campaign_state(key: str, now: datetime) -> CampaignState:
    """Incarnation and lease numbers start from the clock.

    So if a state is ever lost, the next one has higher numbers: fewer leases are made than seconds pass.
    """
    del key
    return CampaignState(
        incarnation=int(now.timestamp() * 1_000_000),
        leases_made=max(0, int(now.timestamp()) - FIRST_SECOND),
    )


def find_current_day(state: CampaignState) -> BudgetDay:
    return build_budget_day(state.day, state.configured.timezone)


def find_day(state: CampaignState, now: datetime) -> date:
    """Days never go back, whatever clocks and zones do."""
    if state.day > date.min and now < find_current_day(state).ends_at:
        return state.day
    return max(state.day, find_budget_day(now, state.configured.timezone).day)
