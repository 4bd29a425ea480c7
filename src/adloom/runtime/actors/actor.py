"""The vocabulary of actors: state that one owner changes, one message at a time, by a pure step.

A step takes the state, a message, the time and randomness, and returns the new state and effects. Effects are
values: the runner carries them out in order. Where a step asks for durability, none of them is visible before
the state is durable. At the end is what a host needs from outside.
"""

# pure

import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from adloom.core.random import Chance

StateT = TypeVar("StateT", bound=msgspec.Struct)
MessageT = TypeVar("MessageT", bound=msgspec.Struct)
SHARDS: Final = 100  # Parts of all actors, whatever their kind; the same on every machine, in every run.


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


class NewerActorStateError(UnreadableActorStateError):
    """A state that a newer version has stored: that can read it, and this one cannot."""


class UnreadableMessageError(Exception):
    """A message that this version does not know."""


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
        older: Mapping[int, Callable[[bytes], StateT]] | None = None,
        is_transient: bool = False,
        messages: Any = None,  # noqa: ANN401 - a union of types
        replies: Any = None,  # noqa: ANN401 - a type, or a union of some
    ) -> None:
        self.name = name
        self.step = step
        self.new = new
        self.on_waking = on_waking
        # Effects that must be in the same transaction whenever a state is persisted, for whatever reason.
        self.before_keeping = before_keeping
        self.format = format_number
        # Reads states of older formats; at least of the one before, while versions follow each other.
        self._older = older or {}
        # Its states are never stored: first messages rebuild them, and the rows that it records are the truth.
        self.is_transient = is_transient
        self._encoder = msgspec.msgpack.Encoder(uuid_format="bytes")
        self._decoder = msgspec.msgpack.Decoder(state)
        # The types of its messages and replies: a kind without them runs only in the process of its senders.
        self._message_decoder: msgspec.msgpack.Decoder[MessageT] | None = (
            None if messages is None else msgspec.msgpack.Decoder(messages)
        )
        self._reply_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
            Any if replies is None else replies
        )

    def encode(self, state: StateT) -> bytes:
        return self._encoder.encode(state)

    def decode(self, encoded: bytes, *, format_number: int) -> StateT:
        """Decode a state; added fields are fine, any other change needs a new format number, and a reader of the old."""
        read = self._decoder.decode if format_number == self.format else self._older.get(format_number)
        if read is None:
            is_newer = format_number > self.format
            raise (NewerActorStateError if is_newer else UnreadableActorStateError)(
                f"{self.name}: format {format_number} instead of {self.format}."
            )
        try:
            return read(encoded)
        except msgspec.DecodeError as error:
            raise UnreadableActorStateError(f"{self.name}: {error}") from error

    def encode_message(self, message: msgspec.Struct) -> bytes:
        """Encode a message to an actor of this kind, or its reply."""
        return self._encoder.encode(message)

    def decode_message(self, encoded: bytes) -> MessageT:
        """Decode a message; UnreadableMessageError if this version does not know it."""
        if self._message_decoder is None:
            raise UnreadableMessageError(f"{self.name} gets no messages from other processes.")
        try:
            return self._message_decoder.decode(encoded)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadableMessageError(f"{self.name}: {error}") from error

    def decode_reply(self, encoded: bytes) -> Any:  # noqa: ANN401 - each kind's own
        return self._reply_decoder.decode(encoded)


# A host runs kinds whose states and messages have many types.
AnyKind = ActorKind[Any, Any]


class StoredState(msgspec.Struct, frozen=True):
    """A state as stored; `format` is the number of its encoding."""

    version: int
    format: int
    state: bytes
    wake_at: datetime | None


class StateWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A state to store over the version it was made from; 0 is a new state."""

    address: Address
    was_version: int
    format: int
    state: bytes
    wake_at: datetime | None


class FencedOutError(Exception):
    """Another host has written one of these states since: this host does not own them any more.

    `addresses` are the refused ones, where they are known.
    """

    def __init__(self, message: str, addresses: Sequence[Address] = ()) -> None:
        super().__init__(message)
        self.addresses = addresses


class StateRejectedError(Exception):
    """One of these states or records can never be stored; none of them was."""


class StateStore(Protocol):
    """Where states are stored; raises UnavailableError when it is away."""

    async def load(self, addresses: Sequence[Address]) -> Mapping[Address, StoredState]:
        """Load the states that exist."""
        ...

    async def list_timers(self, *, until: datetime | None = None) -> Sequence[tuple[Address, datetime]]:
        """Return the stored alarms: all of them, or those until a moment."""
        ...

    async def commit(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        """Store all states and records, or none.

        Raises FencedOutError or StateRejectedError when nothing was stored, UnavailableError when that is unknown.
        """


class FirstMessages(Protocol):
    """Configures an actor before its first message."""

    async def load_first_messages(
        self, addresses: Sequence[Address]
    ) -> Mapping[Address, Sequence[msgspec.Struct]]:
        """Return the messages that come before all others, or raise UnavailableError."""
        ...


class Broadcaster(Protocol):
    """Delivers what actors publish."""

    async def publish(self, messages: Sequence[tuple[str, msgspec.Struct]]) -> None:
        """Publish messages by topic; they may get lost."""


class ActorCounts:
    """Counters of a host since the start of the process."""

    __slots__ = ("batches", "failed", "fenced", "refused", "steps", "unpublished")

    def __init__(self) -> None:
        self.steps = 0  # Messages that were processed, alarms included.
        self.batches = 0
        self.failed = 0  # Messages whose step failed, or whose result was not stored.
        self.refused = 0  # Messages that no mailbox took.
        self.fenced = 0  # Times that another host was found to own the actors.
        self.unpublished = 0  # Messages that could not be published.


def find_shard(address: Address) -> int:
    return zlib.crc32(address.key.encode()) % SHARDS
