"""How messages travel between delivery processes and budget actors: channels of Valkey's pub/sub, and what goes over them.

Nothing here is kept: a message that nobody hears is lost. Whoever needs an answer asks again.

    adloom:brain:mail            to the budget actors: letters
    adloom:brain:session:<n>     to the one delivery process whose session that is: news
    adloom:brain:spend           to whoever listens: news
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from adloom.budgets.messages import (
    AdvertiserExhausted,
    AdvertiserMessage,
    AdvertiserRestored,
    CampaignExhausted,
    CampaignMessage,
    CampaignRestored,
    LeaseAnswer,
    Recall,
    SpendUpdate,
)
from adloom.runtime.actors.actor import Address

INBOX_CHANNEL: Final = "adloom:brain:mail"
SPEND_CHANNEL: Final = "adloom:brain:spend"
SESSION_KIND: Final = "session"

# A process says so every 2 s; one that was not heard of for 10 s is gone.
HEARTBEAT_SECONDS: Final = 2.0
SESSION_SECONDS_MAX: Final = 10.0


def topic_channel(topic: str) -> str:
    """Name the channel of a topic that entities publish on."""
    return f"adloom:brain:{topic}"


def session_channel(session: int) -> str:
    """Name the channel on which one delivery process listens."""
    return topic_channel(f"session:{session}")


# ---------------------------------------------------------------- about sessions


class SessionHeartbeat(msgspec.Struct, frozen=True, kw_only=True, tag="heartbeat.v1"):
    """A delivery process is there; the first of a session opens it."""

    session: int
    process: str


class SessionEnds(msgspec.Struct, frozen=True, kw_only=True, tag="session_ends.v1"):
    """A delivery process will never say anything in this session again."""

    session: int


class SessionVoid(msgspec.Struct, frozen=True, kw_only=True, tag="session_void.v1"):
    """The session is over, whatever the process thinks: it shall stop giving, and begin another."""

    session: int


SessionMessage: TypeAlias = SessionHeartbeat | SessionEnds
BudgetMessage: TypeAlias = CampaignMessage | AdvertiserMessage | SessionMessage
BudgetUpdate: TypeAlias = (
    LeaseAnswer
    | Recall
    | SessionVoid
    | SpendUpdate
    | CampaignExhausted
    | CampaignRestored
    | AdvertiserExhausted
    | AdvertiserRestored
)


class BudgetEnvelope(NamedTuple):
    """A message, and whom it is for; a session's are for whoever keeps the sessions."""

    to: Address
    message: BudgetMessage


def session_address(session: int) -> Address:
    """Address whoever keeps the sessions."""
    return Address(SESSION_KIND, str(session))


# ---------------------------------------------------------------- as bytes

_encode = msgspec.msgpack.Encoder(uuid_format="bytes").encode
_parts: Final = msgspec.msgpack.Decoder[list[msgspec.Raw]](list[msgspec.Raw])
_letters: Final = msgspec.msgpack.Decoder[list[BudgetEnvelope]](list[BudgetEnvelope])
_letter: Final = msgspec.msgpack.Decoder[BudgetEnvelope](BudgetEnvelope)
_all_news: Final = msgspec.msgpack.Decoder[list[BudgetUpdate]](list[BudgetUpdate])
_one_news: Final = msgspec.msgpack.Decoder[BudgetUpdate](BudgetUpdate)

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def encode_envelopes(letters: Iterable[tuple[Address, BudgetMessage]]) -> bytes:
    """Encode letters to budget actors."""
    return _encode(list(letters))


def decode_envelopes(data: bytes) -> list[BudgetEnvelope]:
    """Read letters; one that a newer version has written, or nobody, is left out."""
    return _read(data, _letters, _letter)


def encode_updates(news: Sequence[BudgetUpdate]) -> bytes:
    """Encode what budget actors say to processes."""
    return _encode(news)


def decode_updates(data: bytes) -> list[BudgetUpdate]:
    """Read what budget actors say; what a newer version has written, or nobody, is left out."""
    return _read(data, _all_news, _one_news)


def _read(
    data: bytes, whole: "msgspec.msgpack.Decoder[list[Any]]", single: "msgspec.msgpack.Decoder[Any]"
) -> list[Any]:
    try:
        return whole.decode(data)
    except _UNREADABLE:
        return _readable(data, single)


def _readable(data: bytes, single: "msgspec.msgpack.Decoder[Any]") -> list[Any]:
    """Read one by one, where they cannot be read all together."""
    found: list[Any] = []
    try:
        parts = _parts.decode(data)
    except _UNREADABLE:
        return found
    for part in parts:
        try:
            found.append(single.decode(part))
        except _UNREADABLE:
            continue
    return found
