"""Messages between the processes of an installation, as bytes.

A group is what one NATS message carries: messages to actors of one shard. A sender that waits for results names the
subject on which it receives them.
"""

# pure

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from uuid import UUID

import msgspec

from adloom.runtime.actors.actor import Address, find_shard

FORMAT: Final = 1
# A group stays far below the megabyte that a NATS message may have by default; a larger message goes alone.
GROUP_MESSAGES_MAX: Final = 64
GROUP_BYTES_MAX: Final = 256 * 1024
# An id that was made so long ago, or ahead, is not applied: whether it was applied before is not known.
ID_AGE_MAX: Final = timedelta(days=2)
ID_AHEAD_MAX: Final = timedelta(days=1)


class SentMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message to an actor. Of an exact one the id is recorded when it is applied; any other may be repeated.

    With `is_fresh` the actor is loaded anew, and so reads again what it is configured from.
    """

    id: UUID
    kind: str
    key: str
    body: bytes
    is_exact: bool = False
    is_ask: bool = False
    is_fresh: bool = False

    @property
    def address(self) -> Address:
        return Address(self.kind, self.key)

    @property
    def shard(self) -> int:
        return find_shard(self.address)


class MessageGroup(msgspec.Struct, frozen=True, array_like=True):
    """What one NATS message carries; `attempt` counts from 1."""

    format: int
    messages: tuple[SentMessage, ...]
    results_to: str = ""
    attempt: int = 1


class MessageResult(msgspec.Struct, frozen=True, array_like=True):
    """What became of an exact message: kept, or why not; `is_final` if sending it again would come to the same."""

    id: UUID
    is_kept: bool
    reply: bytes | None = None
    reason: str = ""
    is_final: bool = False


class UnreadableGroupError(Exception):
    """A group that this version does not know."""


_encode: Final = msgspec.msgpack.Encoder(uuid_format="bytes").encode
_group: Final = msgspec.msgpack.Decoder(MessageGroup)
_message: Final = msgspec.msgpack.Decoder(SentMessage)
_results: Final = msgspec.msgpack.Decoder(list[MessageResult])


def encode_group(messages: Sequence[SentMessage], *, results_to: str = "", attempt: int = 1) -> bytes:
    return _encode(MessageGroup(FORMAT, tuple(messages), results_to, attempt))


def decode_group(data: bytes) -> MessageGroup:
    """Decode a group, or raise UnreadableGroupError."""
    try:
        group = _group.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableGroupError(str(error)) from error
    if group.format != FORMAT:
        raise UnreadableGroupError(f"format {group.format} instead of {FORMAT}")
    return group


def encode_message(message: SentMessage) -> bytes:
    return _encode(message)


def decode_message(data: bytes) -> SentMessage:
    return _message.decode(data)


def encode_results(results: Sequence[MessageResult]) -> bytes:
    return _encode(results)


def decode_results(data: bytes) -> list[MessageResult]:
    return _results.decode(data)


def split_groups(messages: Sequence[SentMessage]) -> list[list[SentMessage]]:
    """Split the messages of one shard into groups of bounded size."""
    groups: list[list[SentMessage]] = []
    size = 0
    for message in messages:
        is_full = not groups or len(groups[-1]) >= GROUP_MESSAGES_MAX
        if is_full or size + len(message.body) > GROUP_BYTES_MAX:
            groups.append([])
            size = 0
        groups[-1].append(message)
        size += len(message.body)
    return groups


# ---------------------------------------------------------------- ids and their days

_RANDOM_BITS: Final = 80


def is_current(message_id: UUID, now: datetime) -> bool:
    """Whether it is known if this message was applied."""
    milliseconds = message_id.int >> _RANDOM_BITS
    return _count_milliseconds(now - ID_AGE_MAX) <= milliseconds <= _count_milliseconds(now + ID_AHEAD_MAX)


def make_first_id(day: date) -> UUID:
    """Return the least id that can be made on a day."""
    return UUID(int=_count_milliseconds(datetime.combine(day, time(), UTC)) << _RANDOM_BITS)


def _count_milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
