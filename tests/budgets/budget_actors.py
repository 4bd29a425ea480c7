"""A host of budget actors on virtual time that can crash between any two effects.

Like the real host it takes messages in batches, commits one transaction per batch, and then sends
messages and updates. A crash loses what was not committed. A batch that repeats a money entry is not committed.
"""

import random
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from adloom.budgets.addresses import CAMPAIGN
from adloom.budgets.advertiser import step as advertiser_step
from adloom.budgets.advertiser.state import AdvertiserState, make_advertiser_state
from adloom.budgets.campaign import step as campaign_step
from adloom.budgets.campaign.state import CampaignState, make_campaign_state
from adloom.budgets.messages import CheckClock, DayRefund, DayTotal, MoneyRow
from adloom.runtime.actors.actor import Address, Effect, Persist, Publish, RecordRow, Reply, Tell, Wake

State = CampaignState | AdvertiserState
Watch = Callable[[Address, State, msgspec.Struct, State, Sequence[Effect], datetime], None]


ROUNDS_MAX = 20  # Rounds of messages between actors in one batch.


class StoredState(NamedTuple):
    """The durable state of an actor."""

    state: State
    wake_at: datetime | None


class Crash(Exception):  # noqa: N818 - an event of the simulation, not an error
    """The host stops; what is stored stays."""


class Batch:
    """The effects of steps that are committed together."""

    def __init__(self) -> None:
        self.persisting: set[Address] = set()
        self.records: list[msgspec.Struct] = []
        self.internal: list[Tell] = []
        self.outgoing: list[Publish | Tell] = []


class ActorHost:
    """Runs campaigns and advertisers."""

    def __init__(
        self,
        chance: random.Random,
        *,
        watch: Watch,
        tell: Callable[[Address, msgspec.Struct], None],
        publish: Callable[[str, msgspec.Struct], None],
        crash_rate: float,
    ) -> None:
        self.stored: dict[Address, StoredState] = {}
        self.rows: list[MoneyRow] = []
        self.offers: set[tuple[UUID, int]] = set()
        self.days: dict[tuple[str, UUID, Any], int] = {}
        self.changed: set[Address] = set()  # Since the last check of the laws.
        self.crashes = 0
        self.crash_rate = crash_rate
        self._states: dict[Address, State] = {}
        self._alarms: dict[Address, datetime] = {}
        self._chance = chance
        self._watch = watch
        self._tell = tell
        self._publish = publish
        self._format = {
            True: msgspec.msgpack.Decoder(CampaignState),
            False: msgspec.msgpack.Decoder(AdvertiserState),
        }

    def state(self, address: Address, now: datetime) -> State:
        """Return the state in memory; load it if it is not there."""
        if address not in self._states:
            is_campaign = address.kind == CAMPAIGN
            if address in self.stored:
                # Encoded and decoded, as in the real store.
                written = msgspec.msgpack.encode(self.stored[address].state)
                self._states[address] = self._format[is_campaign].decode(written)
            else:
                self._states[address] = (make_campaign_state if is_campaign else make_advertiser_state)(
                    address.key, now
                )
        return self._states[address]

    def next_alarm(self) -> tuple[datetime, Address] | None:
        """Return the next alarm."""
        return min(((at, address) for address, at in self._alarms.items()), default=None)

    def wake(self, address: Address, now: datetime) -> None:
        """Wake an actor."""
        self._alarms.pop(address, None)
        self.run([(address, CheckClock())], now)

    def run(self, batch: Sequence[tuple[Address, msgspec.Struct]], now: datetime) -> None:
        """Process a batch of messages; the host may crash during it."""
        try:
            self._run(list(batch), now)
        except Crash:
            self.crash()

    def crash(self) -> None:
        """Drop everything that is not stored, and restart."""
        self.crashes += 1
        self._states.clear()
        self._alarms = {
            address: stored.wake_at for address, stored in self.stored.items() if stored.wake_at is not None
        }

    def _run(self, waiting: list[tuple[Address, msgspec.Struct]], now: datetime) -> None:
        batch = Batch()
        for _ in range(ROUNDS_MAX):
            for address, message in waiting:
                self._collect(batch, address, self._step(address, message, now))
            waiting, batch.internal = [(tell.to, tell.message) for tell in batch.internal], []
            if self._chance.random() < 0.3:
                break
        # Messages that are left go through the message queue.
        batch.outgoing += [Tell(to, message) for to, message in waiting]
        self._may_crash()
        if not self._commit(batch):
            return
        for effect in batch.outgoing:
            self._may_crash()
            if isinstance(effect, Tell):
                self._tell(effect.to, effect.message)
            else:
                self._publish(effect.topic, effect.message)

    def _collect(self, batch: "Batch", address: Address, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Persist():
                    batch.persisting.add(address)
                case RecordRow(row=row):
                    batch.persisting.add(address)
                    batch.records.append(row)
                case Tell():
                    batch.internal.append(effect)
                case Publish():
                    batch.outgoing.append(effect)
                case Wake(at=at):
                    self._set_alarm(address, at)
                case Reply():
                    pass

    def _step(self, address: Address, message: Any, now: datetime) -> Sequence[Effect]:
        before = self.state(address, now)
        if isinstance(before, CampaignState):
            after, effects = campaign_step.step(before, message, now, self._chance)
        else:
            after, effects = advertiser_step.step(before, message, now, self._chance)
        self._watch(address, before, message, after, effects, now)
        self._states[address] = after
        return effects

    def _set_alarm(self, address: Address, at: datetime | None) -> None:
        if at is None:
            self._alarms.pop(address, None)
        else:
            self._alarms[address] = at

    def _commit(self, batch: "Batch") -> bool:
        records = batch.records
        rows = [row for row in records if isinstance(row, MoneyRow)]
        keys = [
            (row.request_id, row.slot) for row in rows if row.request_id is not None and row.slot is not None
        ]
        if len(set(keys)) < len(keys) or not self.offers.isdisjoint(keys):
            self.crash()
            return False
        self.rows += rows
        self.offers.update(keys)
        self.days.update(
            {(row.kind, row.id, row.day): row.spent for row in records if isinstance(row, DayTotal)}
        )
        for row in records:
            if isinstance(row, DayRefund):
                self.days[row.kind, row.id, row.day] -= row.amount
        self.changed |= batch.persisting
        for address in batch.persisting:
            self.stored[address] = StoredState(self._states[address], self._alarms.get(address))
        return True

    def _may_crash(self) -> None:
        if self._chance.random() < self.crash_rate:
            raise Crash
