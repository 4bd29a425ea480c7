"""A kind of entity: its step, how it begins, and how its state is written down."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic

import msgspec

from adloom.runtime.actors.effects import MessageT, StateT, Step, StepResult


class UnreadableActorStateError(Exception):
    """A state in a format that this version does not know."""


class ActorKind(Generic[StateT, MessageT]):
    """What all entities of a kind have in common."""

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
        # What has to be in the same transaction whenever a state is kept, for whatever reason.
        self.before_keeping = before_keeping
        self.format = format_number
        self._encoder = msgspec.msgpack.Encoder(uuid_format="bytes")
        self._decoder = msgspec.msgpack.Decoder(state)

    def encode(self, state: StateT) -> bytes:
        """Write a state down."""
        return self._encoder.encode(state)

    def decode(self, written: bytes, *, format_number: int) -> StateT:
        """Read a state; fields may have been added since, any other change has a new number."""
        if format_number != self.format:
            raise UnreadableActorStateError(f"{self.name}: format {format_number} instead of {self.format}.")
        try:
            return self._decoder.decode(written)
        except msgspec.DecodeError as error:
            raise UnreadableActorStateError(f"{self.name}: {error}") from error


# A host runs kinds whose states and messages are of many types, each kind's its own.
AnyKind = ActorKind[Any, Any]
