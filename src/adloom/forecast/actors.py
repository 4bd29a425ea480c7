"""The actors of a simulated market: real steps one after the other; messages arrive at once, and no state is stored."""

# pure

from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from heapq import heappop, heappush
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
from adloom.runtime.actors.actor import Address, AnyKind, Persist, Publish, RecordRow, Tell, Wake
from adloom.schedule.traffic_shape import TrafficShape

OnEffect = Callable[[Publish | RecordRow], None]  # What leaves the actors.
_CHARGE: Final = Kind.CHARGE
Receive = Callable[[Any], None]  # What the delivery process gets.
AskBids = Callable[[MultiplierRequest], None]
OnCharge = Callable[[MoneyRow], None]


class SimulatedActors:
    """Actors of some kinds, and the timers that they have set."""

    def __init__(self, kinds: Iterable[AnyKind], chance: Chance, on_effect: OnEffect) -> None:
        self._kinds = {kind.name: kind for kind in kinds}
        self._chance = chance
        self._on_effect = on_effect
        self._states: dict[Address, Any] = {}
        self._wakes: dict[Address, datetime] = {}
        self._due: list[tuple[datetime, Address]] = []  # May be stale: only one equal to `_wakes` counts.
        self._told: deque[tuple[Address, Any]] = deque()
        self.steps = 0

    def send(self, address: Address, message: msgspec.Struct, now: datetime) -> None:
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
        """Record every row that still waits to be."""
        for address in list(self._states):
            self._keep(address, now)

    def _run_step(self, address: Address, message: Any, now: datetime) -> None:  # noqa: ANN401 - of any kind
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
                case Publish():
                    self._on_effect(effect)
                case Wake(at=at):
                    self._set_alarm(address, at)
                case Persist():
                    is_kept = True
                case RecordRow():
                    is_kept = True
                    self._on_effect(effect)
                case Tell():
                    self._told.append((effect.to, effect.message))
                case _:
                    pass  # A reply: nothing is asked here.
        return is_kept

    def _set_alarm(self, address: Address, at: datetime | None) -> None:
        if at is None:
            self._wakes.pop(address, None)
        elif self._wakes.get(address) != at:
            self._wakes[address] = at
            heappush(self._due, (at, address))


class SimulatedBudgets(SimulatedActors):
    """All campaigns and advertisers of a market."""

    def __init__(  # noqa: PLR0913 - what gets which message
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
