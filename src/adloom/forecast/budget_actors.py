"""The budget service of a simulated market: the real steps of campaigns and advertisers, run one after the other.

Messages are delivered at once and in order, states are never stored, and no process dies.
"""

# pure

from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from heapq import heappop, heappush
from typing import Any, Final

import msgspec

from adloom.budgets.addresses import SPEND_TOPIC, advertiser_address, campaign_address, session_topic
from adloom.budgets.bid_model import MultiplierRequest
from adloom.budgets.kinds import make_kinds
from adloom.budgets.messages import (
    AdvertiserMessage,
    CampaignCounts,
    CampaignMessage,
    ConfigureAdvertiser,
    ConfigureCampaign,
    LeaseUsage,
    MoneyRow,
)
from adloom.budgets.messages import (
    MoneyKind as Kind,
)
from adloom.core.random import Chance
from adloom.runtime.actors.actor import Address, AnyKind, Persist, Publish, RecordRow, Tell, Wake
from adloom.schedule.traffic_shape import TrafficShape

_CHARGE: Final = Kind.CHARGE

Hear = Callable[[Any], None]  # What the delivery process is told.
AskBids = Callable[[MultiplierRequest], None]
OnCharge = Callable[[MoneyRow], None]


class SimulatedBudgets:
    """All campaigns and advertisers of a market, and the timers that they have set."""

    def __init__(  # noqa: PLR0913 - whom it tells what
        self,
        chance: Chance,
        *,
        session: int,
        hear: Hear,
        ask_bids: AskBids,
        on_charge: OnCharge,
        shape: TrafficShape | None,
    ) -> None:
        self._chance = chance
        self._hear = hear
        self._ask_bids = ask_bids
        self._on_charge = on_charge
        self._shape = shape
        self._topics = {SPEND_TOPIC, session_topic(session)}
        self._kinds: dict[str, AnyKind] = {kind.name: kind for kind in make_kinds()}
        self._states: dict[Address, Any] = {}
        self._wakes: dict[Address, datetime] = {}
        self._due: list[tuple[datetime, Address]] = []  # May be stale: only one equal to `_wakes` counts.
        self._told: deque[tuple[Address, Any]] = deque()
        self.steps = 0

    def configure(
        self,
        advertisers: Iterable[ConfigureAdvertiser],
        campaigns: Iterable[tuple[ConfigureCampaign, CampaignCounts]],
        now: datetime,
    ) -> None:
        for advertiser in advertisers:
            self.send(advertiser_address(advertiser.advertiser_id), advertiser, now)
        for campaign, counts in campaigns:
            address = campaign_address(campaign.campaign_id, campaign.advertiser_id)
            self.send(address, campaign, now)
            self.send(address, counts, now)

    def report(self, address: Address, usage: LeaseUsage, now: datetime) -> None:
        """Apply a report of the delivery process, with the shape of traffic that the service knows."""
        if self._shape is not None:
            usage = msgspec.structs.replace(usage, shape=self._shape)
        self.send(address, usage, now)

    def send(self, address: Address, message: CampaignMessage | AdvertiserMessage, now: datetime) -> None:
        """Run a step, and all that follows from it."""
        self._told.append((address, message))
        while self._told:
            self._run_step(*self._told.popleft(), now)

    def wake_due(self, now: datetime) -> None:
        due = self._due
        while due and due[0][0] <= now:
            at, address = heappop(due)
            if self._wakes.get(address) == at:
                del self._wakes[address]
                self.send(address, self._kinds[address.kind].on_waking, now)

    def flush(self, now: datetime) -> None:
        """Record every charge that still waits to be."""
        for address in list(self._states):
            self._keep(address, now)

    def _run_step(self, address: Address, message: Any, now: datetime) -> None:  # noqa: ANN401 - of either kind
        kind = self._kinds[address.kind]
        state = self._states.get(address)
        if state is None:
            state = kind.new(address.key, now)
        self.steps += 1
        self._states[address], effects = kind.step(state, message, now, self._chance)
        if self._carry_out(address, effects):
            self._keep(address, now)

    def _keep(self, address: Address, now: datetime) -> None:
        """Do what the kind does whenever its state is stored."""
        before_keeping = self._kinds[address.kind].before_keeping
        if before_keeping is not None:
            self._states[address], effects = before_keeping(self._states[address], now)
            self._carry_out(address, effects)

    def _carry_out(self, address: Address, effects: Iterable[Any]) -> bool:
        """Carry out effects; return whether the state would be stored."""
        is_kept = False
        for effect in effects:
            match effect:
                case Publish(message=message):
                    if effect.topic in self._topics:
                        self._hear(message)
                    elif isinstance(message, MultiplierRequest):
                        self._ask_bids(message)
                case Wake(at=at):
                    self._set_alarm(address, at)
                case Persist():
                    is_kept = True
                case RecordRow(row=row):
                    is_kept = True
                    if isinstance(row, MoneyRow) and row.kind is _CHARGE:
                        self._on_charge(row)
                case Tell():
                    self._told.append((effect.to, effect.message))
                case _:
                    pass  # A reply: nobody asks here.
        return is_kept

    def _set_alarm(self, address: Address, at: datetime | None) -> None:
        if at is None:
            self._wakes.pop(address, None)
        elif self._wakes.get(address) != at:
            self._wakes[address] = at
            heappush(self._due, (at, address))
