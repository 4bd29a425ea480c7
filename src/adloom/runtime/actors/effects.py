"""The vocabulary of entities: state that one owner changes, one message at a time, by a pure step.

A step gets the state, a message, the moment and chance, and gives the new state and effects. Effects
are values: whoever runs the step carries them out, in order, and lets nobody see any of them before
the state they follow from is durable, where the step asked for that.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from adloom.core.random import Chance

StateT = TypeVar("StateT", bound=msgspec.Struct)
MessageT = TypeVar("MessageT", bound=msgspec.Struct)


class Address(NamedTuple):
    """Where an entity lives: its kind, and its key among those of its kind."""

    kind: str
    key: str


class Reply(msgspec.Struct, frozen=True):
    """Answer whoever has sent the message of this step."""

    message: msgspec.Struct


class Tell(msgspec.Struct, frozen=True):
    """Send a message to another entity; it may be lost, repeated or overtaken."""

    to: Address
    message: msgspec.Struct


class Publish(msgspec.Struct, frozen=True):
    """Say something to whoever listens to a topic, which may be nobody."""

    topic: str
    message: msgspec.Struct


class RecordRow(msgspec.Struct, frozen=True):
    """Write a row in the transaction that makes the state durable; implies `Persist`."""

    row: msgspec.Struct


class Persist(msgspec.Struct, frozen=True):
    """Make the state durable before any effect of this step, or of a later one, is seen."""


class Wake(msgspec.Struct, frozen=True):
    """Be woken at a moment, by the message that the kind has for it; a later one replaces it, None forgets it."""

    at: datetime | None


Effect: TypeAlias = Reply | Tell | Publish | RecordRow | Persist | Wake


class StepResult(NamedTuple, Generic[StateT]):
    """What a step gives: the new state, and what is to be done."""

    state: StateT
    effects: tuple[Effect, ...] = ()


Step: TypeAlias = Callable[[StateT, MessageT, datetime, Chance], StepResult[StateT]]
