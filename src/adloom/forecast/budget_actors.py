"""The budget service of a simulated market: the real steps of campaigns and advertisers, run one after the other."""

# pure

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

from adloom.budgets.addresses import (
    SPEND_TOPIC,
    make_advertiser_address,
    make_campaign_address,
    make_session_topic,
)
from adloom.budgets.bid_model import MultiplierRequest
from adloom.budgets.kinds import make_kinds
from adloom.budgets.messages import (
    CampaignCounts,
    ConfigureAdvertiser,
    ConfigureCampaign,
    LeaseUsage,
    MoneyRow,
)
from adloom.budgets.messages import (
    MoneyKind as Kind,
)
from adloom.core.random import Chance
from adloom.forecast.actor_steps import SimulatedActors
from adloom.runtime.actors.actor import Address, Publish, RecordRow
from adloom.schedule.traffic_shape import TrafficShape

_CHARGE: Final = Kind.CHARGE

Receive = Callable[[Any], None]  # What the delivery process is told.
AskBids = Callable[[MultiplierRequest], None]
OnCharge = Callable[[MoneyRow], None]


class SimulatedBudgets(SimulatedActors):
    """All campaigns and advertisers of a market."""

    def __init__(  # noqa: PLR0913 - whom it tells what
        self,
        chance: Chance,
        *,
        session: int,
        receive: Receive,
        ask_bids: AskBids,
        on_charge: OnCharge,
        shape: TrafficShape | None,
    ) -> None:
        super().__init__(make_kinds(), chance, self._on_told)
        self._receive = receive
        self._ask_bids = ask_bids
        self._on_charge = on_charge
        self._shape = shape
        self._topics = {SPEND_TOPIC, make_session_topic(session)}

    def configure(
        self,
        advertisers: Iterable[ConfigureAdvertiser],
        campaigns: Iterable[tuple[ConfigureCampaign, CampaignCounts]],
        now: datetime,
    ) -> None:
        for advertiser in advertisers:
            self.send(make_advertiser_address(advertiser.advertiser_id), advertiser, now)
        for campaign, counts in campaigns:
            address = make_campaign_address(campaign.campaign_id, campaign.advertiser_id)
            self.send(address, campaign, now)
            self.send(address, counts, now)

    def report(self, address: Address, usage: LeaseUsage, now: datetime) -> None:
        """Apply a report of the delivery process, with the shape of traffic that the service knows."""
        if self._shape is not None:
            usage = msgspec.structs.replace(usage, shape=self._shape)
        self.send(address, usage, now)

    def _on_told(self, effect: Publish | RecordRow) -> None:
        if isinstance(effect, RecordRow):
            row = effect.row
            if isinstance(row, MoneyRow) and row.kind is _CHARGE:
                self._on_charge(row)
        elif effect.topic in self._topics:
            self._receive(effect.message)
        elif isinstance(effect.message, MultiplierRequest):
            self._ask_bids(effect.message)
