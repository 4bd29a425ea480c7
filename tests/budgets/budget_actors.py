"""A host of budget actors on virtual time that crashes between any two effects.

As the real one: messages in batches, one transaction a batch, then replies and news; what was not
kept is forgotten. Money entries have a unique key, and a batch that would break it is not kept.
"""

import random
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from adloom.budgets.addresses import CAMPAIGN
from adloom.budgets.advertiser import step as advertiser_step
from adloom.budgets.advertiser.state import AdvertiserState, new_advertiser
from adloom.budgets.campaign import step as campaign_step
from adloom.budgets.campaign.state import CampaignState, new_campaign
from adloom.budgets.messages import CheckClock, DayTotal, MoneyRow
from adloom.runtime.actors.actor import Address, Effect, Persist, Publish, RecordRow, Reply, Tell, Wake

State = CampaignState | AdvertiserState
Watch = Callable[[Address, State, msgspec.Struct, State, Sequence[Effect], datetime], None]


ROUNDS_MAX = 20  # Of what they tell each other in a batch.


class Kept(NamedTuple):
    """What is durable of an entity."""

    state: State
    wake_at: datetime | None


class Crash(Exception):  # noqa: N818 - it is what happens, not an error of ours
    """The host is gone; what is kept stays."""


class Batch:
    """What steps that become durable together have come to."""

    def __init__(self) -> None:
        self.persisting: set[Address] = set()
        self.records: list[msgspec.Struct] = []
        self.told: list[Tell] = []
        self.seen: list[Publish | Tell] = []


class BrainHouse:
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
        self.kept: dict[Address, Kept] = {}
        self.rows: list[MoneyRow] = []
        self.offers: set[tuple[UUID, int]] = set()
        self.days: dict[tuple[str, UUID, Any], int] = {}
        self.changed: set[Address] = set()  # Since somebody has looked.
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
        """Give the state in memory; it is read when it is not there."""
        if address not in self._states:
            is_campaign = address.kind == CAMPAIGN
            if address in self.kept:
                # Written down and read again, as it would be.
                written = msgspec.msgpack.encode(self.kept[address].state)
                self._states[address] = self._format[is_campaign].decode(written)
            else:
                self._states[address] = (new_campaign if is_campaign else new_advertiser)(address.key, now)
        return self._states[address]

    def next_alarm(self) -> tuple[datetime, Address] | None:
        """Tell who is woken next."""
        return min(((at, address) for address, at in self._alarms.items()), default=None)

    def wake(self, address: Address, now: datetime) -> None:
        """Wake somebody."""
        self._alarms.pop(address, None)
        self.run([(address, CheckClock())], now)

    def run(self, batch: Sequence[tuple[Address, msgspec.Struct]], now: datetime) -> None:
        """Take a batch of messages; or crash on the way."""
        try:
            self._run(list(batch), now)
        except Crash:
            self.crash()

    def crash(self) -> None:
        """Forget everything that is not kept, and start again."""
        self.crashes += 1
        self._states.clear()
        self._alarms = {
            address: kept.wake_at for address, kept in self.kept.items() if kept.wake_at is not None
        }

    def _run(self, waiting: list[tuple[Address, msgspec.Struct]], now: datetime) -> None:
        batch = Batch()
        for _ in range(ROUNDS_MAX):
            for address, message in waiting:
                self._take(batch, address, self._stepped(address, message, now))
            waiting, batch.told = [(tell.to, tell.message) for tell in batch.told], []
            if self._chance.random() < 0.3:
                break
        # Not here, or too many: they go the long way.
        batch.seen += [Tell(to, message) for to, message in waiting]
        self._may_crash()
        if not self._commit(batch):
            return
        for effect in batch.seen:
            self._may_crash()
            if isinstance(effect, Tell):
                self._tell(effect.to, effect.message)
            else:
                self._publish(effect.topic, effect.message)

    def _take(self, batch: "Batch", address: Address, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Persist():
                    batch.persisting.add(address)
                case RecordRow(row=row):
                    batch.persisting.add(address)
                    batch.records.append(row)
                case Tell():
                    batch.told.append(effect)
                case Publish():
                    batch.seen.append(effect)
                case Wake(at=at):
                    self._set_alarm(address, at)
                case Reply():
                    pass

    def _stepped(self, address: Address, message: Any, now: datetime) -> Sequence[Effect]:
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
        self.changed |= batch.persisting
        for address in batch.persisting:
            self.kept[address] = Kept(self._states[address], self._alarms.get(address))
        return True

    def _may_crash(self) -> None:
        if self._chance.random() < self.crash_rate:
            raise Crash
