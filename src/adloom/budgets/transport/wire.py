"""Wire format between delivery processes and budget actors, over Valkey's pub/sub.

Nothing is stored: a message without a listener is lost. A sender that needs an answer asks again.

    adloom:brain:mail            to the budget actors, and from campaigns that ask for their counts: envelopes
    adloom:brain:session:<n>     to the delivery process of that session: updates
    adloom:brain:spend           to all listeners: updates
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
    CountsRequest,
    LeaseAnswer,
    Recall,
    SpendUpdate,
)
from adloom.runtime.actors.actor import Address

INBOX_CHANNEL: Final = "adloom:brain:mail"
SPEND_CHANNEL: Final = "adloom:brain:spend"
SESSION_KIND: Final = "session"

# A process sends one every 2 s; one that is silent for 10 s is gone.
HEARTBEAT_SECONDS: Final = 2.0
SESSION_SECONDS_MAX: Final = 10.0


def make_topic_channel(topic: str) -> str:
    return f"adloom:brain:{topic}"


def make_session_channel(session: int) -> str:
    return make_topic_channel(f"session:{session}")


# ---------------------------------------------------------------- about sessions


class SessionHeartbeat(msgspec.Struct, frozen=True, kw_only=True, tag="heartbeat.v1"):
    """A delivery process is alive; the first heartbeat opens its session."""

    session: int
    process: str
    logged_until: int | None = None  # All that it took by this second is in the log; None: it does not say.
    unlogged_seconds: float | None = None  # How long ago that second was, by the clock of the process.


class SessionEnds(msgspec.Struct, frozen=True, kw_only=True, tag="session_ends.v1"):
    """A delivery process will send nothing more in this session."""

    session: int


class SessionVoid(msgspec.Struct, frozen=True, kw_only=True, tag="session_void.v1"):
    """The session is over: the process must stop giving and start another."""

    session: int


SessionMessage: TypeAlias = SessionHeartbeat | SessionEnds
BudgetMessage: TypeAlias = CampaignMessage | AdvertiserMessage | SessionMessage | CountsRequest
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
    """A message and its address; session messages and what campaigns ask for go to the inbox itself."""

    to: Address
    message: BudgetMessage


def make_session_address(session: int) -> Address:
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
    return _encode(list(letters))


def decode_envelopes(data: bytes) -> list[BudgetEnvelope]:
    """Decode messages; those that this version cannot read are left out."""
    return _read(data, _letters, _letter)


def encode_updates(news: Sequence[BudgetUpdate]) -> bytes:
    return _encode(news)


def decode_updates(data: bytes) -> list[BudgetUpdate]:
    return _read(data, _all_news, _one_news)


def _read(
    data: bytes, whole: "msgspec.msgpack.Decoder[list[Any]]", single: "msgspec.msgpack.Decoder[Any]"
) -> list[Any]:
    try:
        return whole.decode(data)
    except _UNREADABLE:
        return _list_readable(data, single)


def _list_readable(data: bytes, single: "msgspec.msgpack.Decoder[Any]") -> list[Any]:
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
