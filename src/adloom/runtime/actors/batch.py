"""Actors in memory, and one batch of their steps: the new states and the effects to carry out."""

import asyncio
from collections import deque
from datetime import datetime
from typing import Any

import msgspec

from adloom.core.random import Chance
from adloom.runtime.actors.actor import (
    Address,
    AnyKind,
    Effect,
    Persist,
    Publish,
    RecordRow,
    Reply,
    StateWrite,
    StoredState,
    Tell,
    UnreadableActorStateError,
    Wake,
)
from adloom.runtime.actors.mailboxes import Envelope


class ActiveActor:
    """An actor in memory: its current state, the durable one, and futures that wait for durability."""

    __slots__ = (
        "_durable_state",
        "address",
        "durable_wake_at",
        "kind",
        "state",
        "touched_at",
        "version",
        "waiting",
        "wake_at",
    )

    def __init__(self, address: Address, kind: AnyKind, stored: StoredState | None, *, now: datetime) -> None:
        self.address = address
        self.kind = kind
        self.state: Any  # Each kind has its own type.
        if stored is None:
            self.state, self.version, self.wake_at = kind.new(address.key, now), 0, None
        else:
            self.state = kind.decode(stored.state, format_number=stored.format)
            self.version, self.wake_at = stored.version, stored.wake_at
        self._durable_state, self.durable_wake_at = self.state, self.wake_at
        self.touched_at = now
        self.waiting: list[asyncio.Future[None]] = []

    @property
    def is_state_durable(self) -> bool:
        return self.kind.is_transient or self.state is self._durable_state

    @property
    def is_durable(self) -> bool:
        """Whether state and alarm are durable, so that the actor may be evicted."""
        return self.kind.is_transient or (self.is_state_durable and self.wake_at == self.durable_wake_at)

    def build_write(self) -> StateWrite:
        return StateWrite(
            address=self.address,
            was_version=self.version,
            format=self.kind.format,
            state=self.kind.encode(self.state),
            wake_at=self.wake_at,
        )

    def mark_durable(self) -> list[asyncio.Future[None]]:
        """Return the futures that waited for this."""
        self.version += 1
        self._durable_state, self.durable_wake_at = self.state, self.wake_at
        waited, self.waiting = self.waiting, []
        return waited


class StepBatch:
    """Steps that become durable in one transaction."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._durable: list[tuple[ActiveActor, asyncio.Future[None]]] = []
        self.touched: dict[Address, ActiveActor] = {}
        self.unreadable: dict[Address, UnreadableActorStateError] = {}  # Actors that could not be loaded.
        self.persisting: dict[Address, ActiveActor] = {}
        self.records: list[msgspec.Struct] = []
        self.tells: deque[Tell] = deque()
        self.published: list[tuple[str, msgspec.Struct]] = []
        self.answers: list[tuple[asyncio.Future[Any], msgspec.Struct | None]] = []

    def run_step(self, actor: ActiveActor, envelope: Envelope, now: datetime) -> None:
        """Run one step and collect its effects; a step that raises changes nothing."""
        state, effects = actor.kind.step(actor.state, envelope.message, now, self._chance)
        actor.state = state
        actor.touched_at = now
        if envelope.is_alarm:
            actor.wake_at = None
        self.touched[actor.address] = actor
        reply = self._collect(actor, effects)
        if envelope.answered is not None:
            self.answers.append((envelope.answered, reply))
        if envelope.durable is not None:
            self._durable.append((actor, envelope.durable))
        if envelope.is_kept_after:
            self.persist(actor)

    def persist(self, actor: ActiveActor) -> None:
        """Persist an actor whose step did not ask for it."""
        if not actor.is_durable:
            self.touched[actor.address] = self.persisting[actor.address] = actor

    def _collect(self, actor: ActiveActor, effects: tuple[Effect, ...]) -> msgspec.Struct | None:
        answer: msgspec.Struct | None = None
        for effect in effects:
            match effect:
                # The most frequent effects first.
                case RecordRow(row=row):
                    self.persisting[actor.address] = actor
                    self.records.append(row)
                case Wake(at=at):
                    actor.wake_at = at
                case Persist():
                    self.persisting[actor.address] = actor
                case Tell():
                    self.tells.append(effect)
                case Publish(topic=topic, message=message):
                    self.published.append((topic, message))
                case Reply(message=message):
                    answer = message
        return answer

    def complete(self, now: datetime) -> None:
        """Apply the kinds' `before_keeping` to every actor that will be persisted."""
        for actor in list(self.persisting.values()):
            if actor.kind.before_keeping is not None:
                actor.state, effects = actor.kind.before_keeping(actor.state, now)
                self._collect(actor, effects)

    def build_writes(self) -> list[StateWrite]:
        return [actor.build_write() for actor in self.persisting.values() if not actor.kind.is_transient]

    def mark_durable(self) -> list[asyncio.Future[None]]:
        """Return the futures that need not wait any longer."""
        done = [waited for actor in self.persisting.values() for waited in actor.mark_durable()]
        for actor, durable in self._durable:
            # A state that is not durable yet will be when the actor persists or is evicted.
            (done if actor.is_state_durable else actor.waiting).append(durable)
        return done
