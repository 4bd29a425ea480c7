"""The laws of caps, and what the event tables count of a campaign."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.confirms.offers import Offer
from adloom.budgets.lifetime_counts import LifetimeCounts
from adloom.budgets.messages import MoneyKind, MoneyRow
from adloom.core.ids import CampaignId
from simulation.campaigns import SimulatedCampaigns
from simulation.tables import TablesServer

Demand = Callable[[bool, str], None]


class _OfferOut(NamedTuple):
    campaign_id: CampaignId
    until: datetime  # When its hold is over, at the earliest.


class CapLaws:
    """No campaign is offered beyond its impression cap, by whatever process, and clicks beyond a cap are free."""

    def __init__(
        self, catalog: SimulatedCampaigns, demand: Demand, *, hold_seconds: int, are_clocks_right: bool
    ) -> None:
        self._catalog = catalog
        self._demand = demand
        self._hold = timedelta(seconds=hold_seconds - 1)  # A lease knows the second of an offer.
        self._are_clocks_right = are_clocks_right
        self._out: dict[Offer, _OfferOut] = {}
        self._seen_in_time: Counter[CampaignId] = Counter()
        self._paid_clicks: Counter[CampaignId] = Counter()
        self.tables: TablesServer | None = None  # As soon as there are some.
        self.offered_of_caps = 0

    def check_offer(self, offer: Offer, campaign_id: CampaignId, now: datetime) -> None:
        """Law: what was seen of a campaign and what is out make no more than its cap.

        An offer that is seen after its hold was over counts too, and may be one more: it could not be known.
        """
        cap = self._catalog.campaigns[campaign_id].impression_cap
        if cap is None:
            return
        self.offered_of_caps += 1
        self._out[offer] = _OfferOut(campaign_id, now + self._hold)
        out = sum(one.campaign_id == campaign_id and one.until > now for one in self._out.values())
        self._demand(
            not self._are_clocks_right or self._seen_in_time[campaign_id] + out <= cap,
            f"{campaign_id} has {self._seen_in_time[campaign_id]} impressions and {out} offers out, and a cap of {cap}",
        )

    def record_seen(self, offer: Offer, now: datetime) -> None:
        """Note an impression; one that is repeated, or late, changes nothing."""
        one = self._out.pop(offer, None)
        if one is not None and one.until > now:
            self._seen_in_time[one.campaign_id] += 1

    def check_row(self, row: MoneyRow) -> None:
        """Law: no more clicks are paid than the cap, and none within the cap is free because of it."""
        cap = self._catalog.campaigns[row.campaign_id].click_cap
        if row.kind is MoneyKind.OVER_CAP:
            self._demand(
                cap is not None and self._count(row.campaign_id).clicks > cap,
                f"a click of {row.campaign_id} is free, and within its cap of {cap}",
            )
        if cap is None or row.kind is not MoneyKind.CHARGE:
            return
        self._paid_clicks[row.campaign_id] += 1
        paid = self._paid_clicks[row.campaign_id]
        self._demand(paid <= cap, f"{paid} clicks of {row.campaign_id} are paid, and its cap is {cap}")

    def check_rest(self, state: CampaignState) -> None:
        """Law: when all holds are over, no offer of a cap is out."""
        assert state.config is not None
        out = sum(one.outstanding for one in state.offers.values())
        self._demand(out == 0, f"{state.config.campaign_id} still has {out} offers of its cap out")

    def is_full(self, campaign_id: CampaignId) -> bool:
        """Whether a cap keeps a campaign from spending more."""
        one = self._catalog.campaigns[campaign_id]
        counts = self._count(campaign_id)
        return (one.impression_cap is not None and counts.impressions >= one.impression_cap) or (
            one.click_cap is not None and counts.clicks >= one.click_cap
        )

    def _count(self, campaign_id: CampaignId) -> LifetimeCounts:
        assert self.tables is not None
        return count(self.tables, self._catalog.campaigns[campaign_id].key)


def count(tables: TablesServer, campaign_key: int) -> LifetimeCounts:
    kinds = Counter(
        key.kind for key, row in tables.rows.items() if row.is_valid and row.campaign_id == campaign_key
    )
    return LifetimeCounts(kinds["impression"], kinds["click"])
