"""One batch of steps, in memory: what they make of the states, and what is to be done then."""

import asyncio
from collections import deque
from datetime import datetime
from typing import Any

import msgspec

from adloom.core.random import Chance
from adloom.runtime.actors.active import ActiveActor
from adloom.runtime.actors.effects import Address, Effect, Persist, Publish, RecordRow, Reply, Tell, Wake
from adloom.runtime.actors.mailboxes import Envelope
from adloom.runtime.actors.ports import StateWrite


class StepBatch:
    """Steps that become durable together."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._durable: list[tuple[ActiveActor, asyncio.Future[None]]] = []
        self.touched: dict[Address, ActiveActor] = {}
        self.persisting: dict[Address, ActiveActor] = {}
        self.records: list[msgspec.Struct] = []
        self.tells: deque[Tell] = deque()
        self.published: list[tuple[str, msgspec.Struct]] = []
        self.answers: list[tuple[asyncio.Future[Any], msgspec.Struct | None]] = []

    def run_step(self, entity: ActiveActor, envelope: Envelope, now: datetime) -> None:
        """Run one step and collect its effects; when it raises, nothing has happened."""
        state, effects = entity.kind.step(entity.state, envelope.message, now, self._chance)
        entity.state = state
        entity.touched_at = now
        if envelope.is_alarm:
            entity.wake_at = None
        self.touched[entity.address] = entity
        reply = self._collect(entity, effects)
        if envelope.answered is not None:
            self.answers.append((envelope.answered, reply))
        if envelope.durable is not None:
            self._durable.append((entity, envelope.durable))
        if envelope.is_kept_after:
            self.persist(entity)

    def persist(self, entity: ActiveActor) -> None:
        """Keep somebody who has not asked for it."""
        if not entity.is_durable:
            self.touched[entity.address] = self.persisting[entity.address] = entity

    def _collect(self, entity: ActiveActor, effects: tuple[Effect, ...]) -> msgspec.Struct | None:
        answer: msgspec.Struct | None = None
        for effect in effects:
            match effect:
                # Of these there may be many; of most other steps a waking is all.
                case RecordRow(row=row):
                    self.persisting[entity.address] = entity
                    self.records.append(row)
                case Wake(at=at):
                    entity.wake_at = at
                case Persist():
                    self.persisting[entity.address] = entity
                case Tell():
                    self.tells.append(effect)
                case Publish(topic=topic, message=message):
                    self.published.append((topic, message))
                case Reply(message=message):
                    answer = message
        return answer

    def complete(self, now: datetime) -> None:
        """Let those who will be kept do what has to be done before."""
        for entity in list(self.persisting.values()):
            if entity.kind.before_keeping is not None:
                entity.state, effects = entity.kind.before_keeping(entity.state, now)
                self._collect(entity, effects)

    def build_writes(self) -> list[StateWrite]:
        """Tell what is to be kept."""
        return [entity.build_write() for entity in self.persisting.values()]

    def mark_durable(self) -> list[asyncio.Future[None]]:
        """Note that it is, and tell who need not wait any longer."""
        done = [waited for entity in self.persisting.values() for waited in entity.mark_durable()]
        for entity, durable in self._durable:
            # What is not kept yet is when the entity asks for it, or leaves.
            (done if entity.is_state_durable else entity.waiting).append(durable)
        return done
