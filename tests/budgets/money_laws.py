"""The laws of budgets, checked from outside after every step of a budget actor."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date, datetime

import msgspec

from adloom.budgets.addresses import ADVERTISER, CAMPAIGN
from adloom.budgets.advertiser.state import AdvertiserState
from adloom.budgets.campaign.lease import Lease
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import (
    CampaignExhausted,
    CampaignRestored,
    Confirm,
    LeaseUsage,
    MoneyKind,
    MoneyRow,
    SpendUpdate,
)
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Address, Effect, Publish
from adloom.schedule.budget_day import build_budget_day
from adloom.schedule.pacing import compute_allowance
from tests.budgets.budget_actors import ActorHost, State
from tests.budgets.simulated_process import SimulatedProcess

WITHOUT_BOUND = 1 << 62


class MoneyLaws:
    """The highest budgets so far, and the laws of states, steps and the money ledger."""

    def __init__(self) -> None:
        self.steps = 0
        self.windows: dict[tuple[CampaignId, int], int] = defaultdict(int)  # The highest daily budget so far.
        self.totals: dict[CampaignId, int] = defaultdict(int)
        self.days: dict[tuple[AdvertiserId, date], int] = defaultdict(int)
        self._checked_rows = 0
        self._spent_windows: dict[tuple[CampaignId, int], int] = defaultdict(int)
        self._spent_totals: dict[CampaignId, int] = defaultdict(int)
        self._spent_days: dict[tuple[AdvertiserId, date], int] = defaultdict(int)
        self._spent_campaign_days: dict[tuple[CampaignId, date], int] = defaultdict(int)
        self._stored_days: dict[Address, date] = {}

    def watch(  # noqa: PLR0913, PLR0917 - the parts of a step
        self,
        address: Address,
        before: State,
        message: msgspec.Struct,
        after: State,
        effects: Sequence[Effect],
        now: datetime,
    ) -> None:
        """Check one step."""
        del address
        self.steps += 1
        if isinstance(before, CampaignState):
            assert isinstance(after, CampaignState)
            self._watch_campaign(before, message, after, effects, now)
        elif isinstance(after, AdvertiserState):
            self._watch_advertiser(before, after)

    def check(self, host: ActorHost) -> None:
        """Check what is stored."""
        for row in host.rows[self._checked_rows :]:
            if row.kind is MoneyKind.CHARGE:
                self._charge(row, row.amount)
            elif row.kind is MoneyKind.REFUND:
                self._charge(row, -row.amount)
        self._checked_rows = len(host.rows)
        changed, host.changed = host.changed, set()
        for address in changed:
            state = host.stored[address].state
            assert state.day >= self._stored_days.get(address, date.min), "days never go back"
            self._stored_days[address] = state.day
            if isinstance(state, CampaignState):
                self._check_charges(state)
        self._check_advertisers(host, changed)

    def _check_advertisers(self, host: ActorHost, changed: Set[Address]) -> None:
        campaigns = {
            one: stored.state
            for one, stored in host.stored.items()
            if isinstance(stored.state, CampaignState)
        }
        for address, stored in host.stored.items() if changed else ():
            if isinstance(stored.state, AdvertiserState):
                affected = campaigns if address in changed else changed & campaigns.keys()
                self._check_advertiser(stored.state, [campaigns[one] for one in affected])

    def check_processes(
        self, processes: Iterable[SimulatedProcess], campaigns: Mapping[CampaignId, CampaignState]
    ) -> None:
        """Check that no process can offer more than its campaign has set aside for it."""
        for process in processes:
            for campaign_id, held in process.leases.items():
                lease = campaigns[campaign_id].leases.get(held.lease) if campaign_id in campaigns else None
                if lease is None or lease.closed_second is not None:
                    continue
                can_offer = held.left + sum(held.unreported.values())
                if held.pending is not None and held.pending.report > lease.reported:
                    can_offer += sum(amount for _, amount in held.pending.given)
                assert can_offer <= lease.unassigned, (
                    "a process can offer no more than its campaign has set aside"
                )

    def check_days(self, host: ActorHost) -> None:
        """Check the totals of days, after every report was received."""
        for (campaign_id, day), spent in self._spent_campaign_days.items():
            assert host.days[CAMPAIGN, campaign_id, day] == spent, (
                "a campaign's day is the sum of its charges"
            )
        for (advertiser_id, day), spent in self._spent_days.items():
            assert host.days[ADVERTISER, advertiser_id, day] == spent, (
                "an advertiser's day is that of its campaigns"
            )

    # ------------------------------------------------------------ campaigns

    def _watch_campaign(
        self,
        before: CampaignState,
        message: msgspec.Struct,
        after: CampaignState,
        effects: Sequence[Effect],
        now: datetime,
    ) -> None:
        config = after.config
        if config is None:
            return
        for lease in after.leases.values():
            check_lease(lease)
        assert after.day >= before.day, "days never go back"
        assert after.window >= before.window
        assert after.released_until >= before.released_until
        key = (config.campaign_id, after.window)
        self.windows[key] = max(self.windows[key], _bound(config.daily_budget))
        self.totals[config.campaign_id] = max(self.totals[config.campaign_id], _bound(config.total_budget))
        if config.advertiser_id is not None and not config.is_allotted:
            for day in (after.day, *(lease.day for lease in after.leases.values())):
                self.days[config.advertiser_id, day] = WITHOUT_BOUND
        _check_updates(before, after, effects)
        _check_commitments(before, message, after, now)
        oldest = min(
            (at for lease in after.leases.values() if (at := lease.find_oldest_hold()) is not None),
            default=None,
        )
        assert oldest is None or (after.held_since is not None and after.held_since <= oldest), (
            "every hold has a timer"
        )

    def _charge(self, row: MoneyRow, amount: int) -> None:
        """Add a charge, or take away a refund."""
        self._spent_windows[row.campaign_id, row.window] += amount
        self._spent_totals[row.campaign_id] += amount
        self._spent_campaign_days[row.campaign_id, row.day] += amount
        assert self._spent_windows[row.campaign_id, row.window] >= 0, "no more is given back than was charged"
        assert self._spent_campaign_days[row.campaign_id, row.day] >= 0, (
            "no more is given back than was charged"
        )
        assert (
            self._spent_windows[row.campaign_id, row.window] <= self.windows[row.campaign_id, row.window]
        ), "charges stay within the daily budget"
        assert self._spent_totals[row.campaign_id] <= self.totals[row.campaign_id], (
            "charges stay within the total budget"
        )
        if row.advertiser_id is not None:
            key = (row.advertiser_id, row.day)
            self._spent_days[key] += amount
            assert self._spent_days[key] <= self.days[key], "charges stay within the advertiser's budget"

    def _check_charges(self, state: CampaignState) -> None:
        if state.config is None:
            return
        buffered = sum(row.amount for row in state.buffer if row.kind is MoneyKind.CHARGE)
        spent = self._spent_totals[state.config.campaign_id]
        assert state.spent_total == spent + buffered, "what is spent is the sum of the charges, less refunds"

    # ------------------------------------------------------------ advertisers

    def _watch_advertiser(self, before: State, after: AdvertiserState) -> None:
        assert isinstance(before, AdvertiserState)
        config = after.config
        if config is None:
            return
        assert after.day >= before.day, "days never go back"
        advertiser_day = (config.advertiser_id, after.day)
        self.days[advertiser_day] = max(self.days[advertiser_day], _bound(config.daily_budget))
        today = [one for one in after.slices.values() if one.day == after.day]
        assert after.allotted == sum(one.allotted for one in today)
        assert after.spent == sum(one.get_spent(after.day) for one in after.slices.values())
        is_more = any(
            one.allotted
            > max(one.committed, before.slices[key].get_allotted(after.day) if key in before.slices else 0)
            for key, one in after.slices.items()
            if one.day == after.day
        )
        if is_more and config.daily_budget is not None:
            assert after.allotted <= config.daily_budget, "allotments stay within the budget"

    def _check_advertiser(self, state: AdvertiserState, campaigns: Iterable[CampaignState]) -> None:
        if state.config is None:
            return
        for campaign in campaigns:
            config = campaign.config
            if config is None or config.advertiser_id != state.config.advertiser_id or not config.is_allotted:
                continue
            if self.days[state.config.advertiser_id, campaign.day] == WITHOUT_BOUND:
                continue  # Something was committed before the budget was set.
            one = state.slices.get(config.campaign_id)
            if one is not None and one.day == campaign.day:
                assert campaign.committed_today <= one.allotted, "what is committed was allotted"
            elif campaign.day == state.day:
                assert campaign.committed_today == 0, "what is committed was allotted"


def check_lease(lease: Lease) -> None:
    """Check that a grant is the sum of its parts."""
    held = sum(lease.held.values())
    assert lease.granted == lease.unassigned + held + lease.charged + lease.expired
    assert lease.holding == held
    assert lease.ahead == -sum(amount for amount in lease.held.values() if amount < 0)
    assert 0 <= lease.ahead <= lease.unassigned
    assert lease.outstanding >= 0
    assert 0 not in lease.held.values()


def _check_updates(before: CampaignState, after: CampaignState, effects: Sequence[Effect]) -> None:
    published = [effect.message for effect in effects if isinstance(effect, Publish)]
    exhausted = sum(isinstance(one, CampaignExhausted) for one in published)
    restored = sum(isinstance(one, CampaignRestored) for one in published)
    assert exhausted == (before.exhausted is None and after.exhausted is not None)
    assert restored == (before.exhausted is not None and after.exhausted is None)
    if after.window > before.window:
        updates = [one for one in published if isinstance(one, SpendUpdate)]
        assert any(one.day == after.day and one.window == after.window for one in updates), (
            "every new window is published"
        )


def _check_commitments(
    before: CampaignState, message: msgspec.Struct, after: CampaignState, now: datetime
) -> None:
    """Check that a step commits nothing that the budgets in force do not allow."""
    config = after.config
    assert config is not None
    committed_before = before.spent_total + before.outstanding
    total = after.spent_total + after.outstanding
    if total <= committed_before:
        return
    assert before.waiting or isinstance(message, LeaseUsage | Confirm), (
        "only a report or a confirm commits anything, at once or after it has waited"
    )
    window = after.spent_window + after.outstanding_of_window
    assert total <= _bound(config.total_budget), "commitments stay within the total budget"
    assert window <= _bound(config.daily_budget), "commitments stay within the daily budget"
    if config.is_allotted:
        assert before.waiting or after.committed_today <= before.allotted or after.day > before.day
        assert after.committed_today <= max(after.allotted, before.allotted), (
            "commitments stay within the allotment"
        )
    if isinstance(message, LeaseUsage) and not before.waiting:
        assert config.is_running, "a campaign that does not run commits nothing"
        if config.daily_budget is not None:
            day = build_budget_day(after.day, config.timezone)
            allowance = compute_allowance(
                now, strategy=config.pacing, daily_budget=config.daily_budget, day=day
            )
            assert window <= allowance, "commitments stay within the pacing allowance"


def _bound(budget: Micros | None) -> int:
    return WITHOUT_BOUND if budget is None else budget
