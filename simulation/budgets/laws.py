"""The laws of budgets, checked from outside: what was offered and seen, what people allowed, and what is stored.

Of the actors only the meaning of their states is known here: what is spent, and what may still be.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from adloom.auction.bid import Bid
from adloom.auction.run import run_auction
from adloom.budgets.addresses import ADVERTISER, CAMPAIGN, make_advertiser_address
from adloom.budgets.advertiser.state import AdvertiserState
from adloom.budgets.advertiser.step import advance_to as advertiser_as_of
from adloom.budgets.campaign.lease import Lease
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.campaign.step import advance_to as campaign_as_of
from adloom.budgets.confirms.offers import Offer
from adloom.budgets.messages import UNHELD_LEASE, MoneyKind, MoneyRow
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.core.money import Micros
from adloom.events.log.event import ChargedBy
from adloom.runtime.actors.actor import Address, StateWrite
from adloom.schedule.budget_day import find_budget_day
from adloom.schedule.pacing import PacingStrategy
from adloom.serving.auction.decide import WinningBid
from simulation.budgets.caps import CapLaws
from simulation.campaigns import WITHOUT_BOUND, Selling, SimulatedCampaigns

VIOLATIONS_MAX: Final = 20


class MadeOffer(NamedTuple):
    """An offer, as observed when it was made."""

    campaign_id: CampaignId
    lease: int
    is_leased: bool
    amount: Micros
    hold: Micros
    charged_by: ChargedBy
    at: datetime  # By the true clock.
    session: int  # Of the process that made it.


class BudgetLaws:
    """Watches one run."""

    def __init__(self, catalog: SimulatedCampaigns, *, hold_seconds: int, are_clocks_right: bool) -> None:
        self._catalog = catalog
        self._hold_seconds = hold_seconds
        self._are_clocks_right = are_clocks_right
        self.sessions_over: set[int] = set()
        self._campaigns: dict[Address, CampaignState] = {}
        self._advertisers: dict[Address, AdvertiserState] = {}
        self._read_campaign = msgspec.msgpack.Decoder(CampaignState).decode
        self._read_advertiser = msgspec.msgpack.Decoder(AdvertiserState).decode
        self.made: dict[Offer, MadeOffer] = {}
        self.confirmed: set[Offer] = set()
        self.violations: list[str] = []
        self._offered_of_lease: Counter[tuple[CampaignId, int]] = Counter()
        self._granted: dict[tuple[CampaignId, int], int] = {}
        self._charged: dict[Offer, MoneyRow] = {}
        # The most that was in force while something could be committed of it.
        self._windows: Counter[tuple[CampaignId, int]] = Counter()
        self._totals: Counter[CampaignId] = Counter()
        self._days: Counter[tuple[AdvertiserId, date]] = Counter()
        self._spent_windows: Counter[tuple[CampaignId, int]] = Counter()
        self._spent_totals: Counter[CampaignId] = Counter()
        self._spent_days: Counter[tuple[AdvertiserId, date]] = Counter()
        self._spent_campaign_days: Counter[tuple[CampaignId, date]] = Counter()
        self.caps = CapLaws(
            catalog, self.demand, hold_seconds=hold_seconds, are_clocks_right=are_clocks_right
        )

    @property
    def campaigns(self) -> Iterable[CampaignState]:
        return self._campaigns.values()

    def demand(self, is_so: bool, otherwise: str) -> None:  # noqa: FBT001 - a sentence about it
        """Record a violation unless `is_so`."""
        if not is_so and len(self.violations) < VIOLATIONS_MAX:
            self.violations.append(otherwise)

    # ------------------------------------------------------------ at every offer

    def check_offer(self, offer: Offer, made: MadeOffer) -> None:
        """Law: an offer that holds something is made out of a lease, and of no more than is kept as granted."""
        self.made[offer] = made
        if made.lease == UNHELD_LEASE:
            cap = self._catalog.campaigns[made.campaign_id].impression_cap
            self.demand(cap is None, f"{made.campaign_id} has a cap, and was offered without a hold")
            return
        self.caps.check_offer(offer, made.campaign_id, made.at)
        if not made.is_leased:
            return
        key = made.campaign_id, made.lease
        self._offered_of_lease[key] += made.hold
        self.demand(
            made.hold == made.amount
            if made.charged_by is ChargedBy.IMPRESSION
            else 0 < made.hold <= self._catalog.campaigns[made.campaign_id].price.cost,
            f"an offer of {made.campaign_id} at {made.amount} holds {made.hold}",
        )
        self.demand(made.lease > 0, f"{made.campaign_id} was offered without a lease")
        self.demand(
            self._offered_of_lease[key] <= self._granted.get(key, 0),
            f"{self._offered_of_lease[key]} of lease {made.lease} of {made.campaign_id} is offered, "
            f"and {self._granted.get(key, 0)} was granted",
        )

    def check_auction(self, win: WinningBid, cost: Micros, rivals: Sequence[Bid]) -> None:
        """Law: the highest bid that can pay wins, and pays at least the floor and never more than its bid."""
        bidder = win.bidder
        self.demand(
            bidder.floor <= win.final <= win.ecpm and cost <= bidder.price.cost,
            f"{bidder.campaign_key} wins at {win.final} over a floor of {bidder.floor}, and pays {cost} of {bidder.price.cost}",
        )
        if rivals:
            plain = run_auction(rivals)
            self.demand(
                plain.winner is not None
                and (plain.winner.campaign_key, plain.charge) == (bidder.campaign_key, win.charge),
                f"{bidder.campaign_key} wins at {win.charge}, and should be {plain.winner} at {plain.charge}",
            )

    # ------------------------------------------------------------ at every commit

    def check_commit(self, writes: Sequence[StateWrite], rows: Sequence[MoneyRow]) -> None:
        """Check what has become durable."""
        campaigns: list[tuple[CampaignState | None, CampaignState]] = []
        for write in writes:
            if write.address.kind == CAMPAIGN:
                before, after = self._campaigns.get(write.address), self._read_campaign(write.state)
                self._campaigns[write.address] = after
                if after.config is not None:
                    self._allow(before, after)
                    campaigns.append((before, after))
            else:
                known, standing = self._advertisers.get(write.address), self._read_advertiser(write.state)
                self._advertisers[write.address] = standing
                self._check_advertiser(known, standing)
        for row in rows:
            self._check_row(row)
        for before, after in campaigns:
            self._check_campaign(before, after)
            self._check_over_budget(before, after, rows)
        self._check_allotments()

    def _allow(self, before: CampaignState | None, after: CampaignState) -> None:
        """Record what people allowed since the campaign was last stored."""
        config = after.config
        assert config is not None
        since, until = _compare_versions(before, after)
        campaign_id = config.campaign_id
        window = campaign_id, after.window
        self._windows[window] = max(
            self._windows[window], self._catalog.find_most(("daily", campaign_id), since, until)
        )
        self._totals[campaign_id] = max(
            self._totals[campaign_id], self._catalog.find_most(("total", campaign_id), since, until)
        )
        if config.advertiser_id is not None:
            most = self._catalog.find_most(("payer", config.advertiser_id), since, until)
            for day in {after.day, *(lease.day for lease in after.leases.values())}:
                # Without a budget nothing is allotted, and whatever was committed then stays committed.
                if most == WITHOUT_BOUND:
                    self._days[config.advertiser_id, day] = WITHOUT_BOUND

    def _check_campaign(self, before: CampaignState | None, after: CampaignState) -> None:
        config = after.config
        assert config is not None
        campaign_id, (since, until) = config.campaign_id, _compare_versions(before, after)
        total_max = self._catalog.find_most(("total", campaign_id), since, until)
        daily_max = self._catalog.find_most(("daily", campaign_id), since, until)
        # What may still be clicked guarantees no charge: each click is checked for itself.
        total, window = (after.spent_total + after.firm, after.spent_window + after.firm_of_window)
        was_total = was_window = 0
        if before is not None:
            was_total = before.spent_total + before.firm
            was_window = before.spent_window + before.firm_of_window if before.window == after.window else 0
            self.demand(after.day >= before.day, f"{campaign_id} went back from {before.day} to {after.day}")
            self.demand(after.window >= before.window, f"{campaign_id} went back to an older window")
        self.demand(
            total <= max(was_total, total_max), f"{campaign_id} has committed {total} of {total_max} in all"
        )
        self.demand(
            window <= max(was_window, daily_max), f"{campaign_id} has committed {window} of {daily_max} a day"
        )
        self.demand(
            after.spent_total == self._spent_totals[campaign_id],
            f"{campaign_id} has spent {after.spent_total}, and {self._spent_totals[campaign_id]} is charged",
        )
        for lease in after.leases.values():
            self._check_lease(campaign_id, lease)

    def _check_over_budget(
        self, before: CampaignState | None, after: CampaignState, rows: Sequence[MoneyRow]
    ) -> None:
        """Law: what is seen or clicked is free only where it does not fit.

        Whether it fits its advertiser's budget is not seen here, nor whether an impression is within a smooth pace.
        """
        config = after.config
        if before is None or config is None or before.config != config or config.is_allotted:
            return
        if (before.window, before.day) != (after.window, after.day):
            return
        checked = {MoneyKind.OVER_BUDGET}
        if config.pacing is PacingStrategy.ACCELERATED:
            checked.add(MoneyKind.UNBILLED)
        for row in rows:
            if row.campaign_id != config.campaign_id or row.kind not in checked:
                continue
            used = max(before.firm, after.firm) + row.amount
            fits_total = config.total_budget is None or after.spent_total + used <= config.total_budget
            fits_day = config.daily_budget is None or after.spent_window + used <= config.daily_budget
            self.demand(
                not (fits_total and fits_day), f"an event of {row.campaign_id} was free, and could be paid"
            )

    def _check_lease(self, campaign_id: CampaignId, lease: Lease) -> None:
        key = campaign_id, lease.number
        self._granted[key] = lease.granted
        self.demand(
            lease.granted == lease.unassigned + sum(lease.held.values()) + lease.charged + lease.expired,
            f"lease {lease.number} of {campaign_id} does not add up",
        )
        self.demand(
            self._offered_of_lease[key] <= lease.granted,
            f"{self._offered_of_lease[key]} of lease {lease.number} of {campaign_id} is offered, "
            f"and {lease.granted} is granted",
        )

    def _check_row(self, row: MoneyRow) -> None:
        """Law: every charge is of an offer that was made and confirmed, once, and within what was allowed."""
        if row.kind is MoneyKind.RELEASE:
            return
        assert row.request_id is not None
        assert row.slot is not None
        offer = row.request_id.int, row.slot
        made = self.made[offer]
        self.demand(offer not in self._charged, f"an offer of {row.campaign_id} is charged twice")
        self.demand(offer in self.confirmed, f"an offer of {row.campaign_id} is charged, and was never seen")
        self.demand(row.amount == made.amount, f"an offer of {row.campaign_id} is charged {row.amount}")
        self._charged[offer] = row
        self.caps.check_row(row)
        if row.kind is not MoneyKind.CHARGE:
            self.demand(
                made.charged_by is ChargedBy.CLICK or not self._is_held(made, row),
                f"a hold of {row.campaign_id} was confirmed in time for nothing",
            )
            return
        self._spent_windows[row.campaign_id, row.window] += row.amount
        self._spent_totals[row.campaign_id] += row.amount
        self._spent_campaign_days[row.campaign_id, row.day] += row.amount
        self._check_spent(row)
        if row.lease and self._are_clocks_right:
            zone = self._catalog.campaigns[row.campaign_id].timezone
            day = find_budget_day(made.at, zone).day
            self.demand(row.day == day, f"what was offered on {day} is charged on {row.day}")

    def _is_held(self, made: MadeOffer, row: MoneyRow) -> bool:
        has_lease = made.lease not in {0, UNHELD_LEASE}
        is_sure = self._are_clocks_right and has_lease and made.session not in self.sessions_over
        return is_sure and row.at < made.at + timedelta(seconds=self._hold_seconds - 1)

    def _check_spent(self, row: MoneyRow) -> None:
        window, total = (row.campaign_id, row.window), row.campaign_id
        self.demand(
            self._spent_windows[window] <= self._windows[window],
            f"{row.campaign_id} was charged {self._spent_windows[window]} of {self._windows[window]} on {row.day}",
        )
        self.demand(
            self._spent_totals[total] <= self._totals[total],
            f"{row.campaign_id} was charged {self._spent_totals[total]} of {self._totals[total]} in all",
        )
        if row.advertiser_id is not None:
            day = row.advertiser_id, row.day
            self._spent_days[day] += row.amount
            self.demand(
                self._spent_days[day] <= self._days[day],
                f"the campaigns of {row.advertiser_id} were charged {self._spent_days[day]} "
                f"of {self._days[day]} on {row.day}",
            )

    # ------------------------------------------------------------ advertisers

    def _check_advertiser(self, before: AdvertiserState | None, after: AdvertiserState) -> None:
        config = after.config
        if config is None:
            return
        since = before.config.version if before is not None and before.config is not None else 0
        most = self._catalog.find_most(("payer", config.advertiser_id), since, config.version)
        day = config.advertiser_id, after.day
        self._days[day] = max(self._days[day], most)
        if before is not None:
            self.demand(after.day >= before.day, f"{config.advertiser_id} went back to {after.day}")
        # What was committed while there was no budget, or a higher one, stays allotted.
        is_more = any(
            one.get_allotted(after.day) > max(one.committed, _find_allotted(before, campaign_id, after.day))
            for campaign_id, one in after.slices.items()
        )
        self.demand(
            not is_more or after.allotted <= most,
            f"{config.advertiser_id} has allotted {after.allotted} of {most}",
        )

    def _check_allotments(self) -> None:
        """Law: campaigns commit nothing of their advertiser's day that it has not allotted to them."""
        for state in self._campaigns.values():
            config = state.config
            if config is None or config.advertiser_id is None or not config.is_allotted:
                continue
            if self._days[config.advertiser_id, state.day] == WITHOUT_BOUND:
                continue
            payer = self._advertisers.get(make_advertiser_address(config.advertiser_id))
            one = None if payer is None else payer.slices.get(config.campaign_id)
            allotted = 0 if one is None else one.get_allotted(state.day)
            self.demand(
                state.committed_today <= allotted,
                f"{config.campaign_id} has committed {state.committed_today} of the {allotted} "
                f"that it was allotted for {state.day}",
            )

    # ------------------------------------------------------------ at the end

    def check_rest(self) -> None:
        """Law: when all is quiet and all holds are over, nothing is outstanding, and all that was seen is settled."""
        for offer in sorted(self.confirmed - self._charged.keys()):
            self.demand(
                is_so=False, otherwise=f"an offer of {self.made[offer].campaign_id} was never settled"
            )
        for state in self._campaigns.values():
            if state.config is not None:
                self.demand(
                    state.outstanding == 0,
                    f"{state.config.campaign_id} still has {state.outstanding} outstanding",
                )
                self.caps.check_rest(state)

    def check_totals(self, totals: Mapping[tuple[str, UUID, date], int]) -> None:
        """Law: what is said of a day is the sum of its charges, of campaigns and of advertisers."""
        for (campaign_id, day), spent in self._spent_campaign_days.items():
            said = totals.get((CAMPAIGN, campaign_id, day), 0)
            self.demand(said == spent, f"{campaign_id} was charged {spent} on {day}, and {said} is stored")
        for (advertiser_id, day), spent in self._spent_days.items():
            said = totals.get((ADVERTISER, advertiser_id, day), 0)
            self.demand(said == spent, f"{advertiser_id} was charged {spent} on {day}, and {said} is stored")

    def list_unspent(self, now: datetime) -> list[str]:
        """Return what could be spent and is not, with every campaign running and visitors for all."""
        return [
            f"{one.id} could spend {amount}, and does not"
            for one in self._catalog.campaigns.values()
            if (amount := self._compute_left(one, now)) >= one.price.cost
            and amount < WITHOUT_BOUND
            and not self.caps.is_full(one.id)
        ]

    def _compute_left(self, one: Selling, now: datetime) -> int:
        limits = [
            self._catalog.find_most(("daily", one.id), self._catalog.version, self._catalog.version),
            self._catalog.find_most(("total", one.id), self._catalog.version, self._catalog.version),
        ]
        state = self._campaigns.get(one.address)
        if state is not None and state.config is not None:
            state = campaign_as_of(state, now)
            limits = [limits[0] - state.spent_window, limits[1] - state.spent_total]
        if one.payer_id is not None:
            daily = self._catalog.find_most(
                ("payer", one.payer_id), self._catalog.version, self._catalog.version
            )
            payer = self._advertisers.get(make_advertiser_address(one.payer_id))
            limits.append(daily if payer is None else daily - advertiser_as_of(payer, now).spent)
        return min(limits) if min(limits) < WITHOUT_BOUND // 2 else WITHOUT_BOUND


def _find_allotted(before: AdvertiserState | None, campaign_id: CampaignId, day: date) -> int:
    one = None if before is None else before.slices.get(campaign_id)
    return 0 if one is None else one.get_allotted(day)


def _compare_versions(before: CampaignState | None, after: CampaignState) -> tuple[int, int]:
    """Return the versions of the catalog between which a campaign was last stored."""
    assert after.config is not None
    since = before.config.version if before is not None and before.config is not None else 0
    return since, after.config.version
