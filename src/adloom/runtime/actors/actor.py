"""The vocabulary of actors: state that one owner changes, one message at a time, by a pure step.

A step takes the state, a message, the time and randomness, and returns the new state and effects. Effects are
values: the runner carries them out in order. Where a step asks for durability, none of them is visible before
the state is durable.
"""

# pure

from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from adloom.core.random import Chance

StateT = TypeVar("StateT", bound=msgspec.Struct)
MessageT = TypeVar("MessageT", bound=msgspec.Struct)


class Address(NamedTuple):
    """An actor's kind, and its key within that kind."""

    kind: str
    key: str


class Reply(msgspec.Struct, frozen=True):
    """Answer the sender of this step's message."""

    message: msgspec.Struct


class Tell(msgspec.Struct, frozen=True):
    """Send a message to another actor; it may be lost, repeated or reordered."""

    to: Address
    message: msgspec.Struct


class Publish(msgspec.Struct, frozen=True):
    """Broadcast a message on a topic; there may be no listener."""

    topic: str
    message: msgspec.Struct


class RecordRow(msgspec.Struct, frozen=True):
    """Write a row in the transaction that makes the state durable; implies `Persist`."""

    row: msgspec.Struct


class Persist(msgspec.Struct, frozen=True):
    """Make the state durable before any effect of this or a later step is visible."""


class Wake(msgspec.Struct, frozen=True):
    """Send the kind's wake message at a time; replaces the previous alarm, None cancels it."""

    at: datetime | None


Effect: TypeAlias = Reply | Tell | Publish | RecordRow | Persist | Wake


class StepResult(NamedTuple, Generic[StateT]):
    """What a step returns."""

    state: StateT
    effects: tuple[Effect, ...] = ()


Step: TypeAlias = Callable[[StateT, MessageT, datetime, Chance], StepResult[StateT]]


class UnreadableActorStateError(Exception):
    """A state in a format that this version does not know."""


class ActorKind(Generic[StateT, MessageT]):
    """What all actors of a kind share: the step, the first state, and the encoding of states."""

    def __init__(  # noqa: PLR0913 - what kinds differ in
        self,
        name: str,
        state: type[StateT],
        step: Step[StateT, MessageT],
        new: Callable[[str, datetime], StateT],
        *,
        on_waking: MessageT,
        before_keeping: Callable[[StateT, datetime], StepResult[StateT]] | None = None,
        format_number: int = 1,
    ) -> None:
        self.name = name
        self.step = step
        self.new = new
        self.on_waking = on_waking
        # Effects that must be in the same transaction whenever a state is persisted, for whatever reason.
        self.before_keeping = before_keeping
        self.format = format_number
        self._encoder = msgspec.msgpack.Encoder(uuid_format="bytes")
        self._decoder = msgspec.msgpack.Decoder(state)

    def encode(self, state: StateT) -> bytes:
        return self._encoder.encode(state)

    def decode(self, encoded: bytes, *, format_number: int) -> StateT:
        """Decode a state; added fields are fine, any other change needs a new format number."""
        if format_number != self.format:
            raise UnreadableActorStateError(f"{self.name}: format {format_number} instead of {self.format}.")
        try:
            return self._decoder.decode(encoded)
        except msgspec.DecodeError as error:
            raise UnreadableActorStateError(f"{self.name}: {error}") from error


# A host runs kinds whose states and messages have many types.
AnyKind = ActorKind[Any, Any]
