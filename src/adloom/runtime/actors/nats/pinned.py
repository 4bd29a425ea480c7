"""JetStream's pinned consumers, by the raw API: the client library knows no priority groups yet.

One consumer per shard, and every worker pulls from all of them. The server delivers to one, the pinned client, until
that has not pulled for two seconds, or the pin is taken from it. A pin begins with the first message.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import SHARDS
from adloom.runtime.actors.nats.ports import Messaging, Received

STREAM: Final = "BRAIN"
SUBJECTS: Final = "brain.*"
GROUP: Final = "owner"
SECOND: Final = 10**9  # In nanoseconds, as the server counts.
PIN_SECONDS: Final = 2
ACK_SECONDS: Final = 10
ACK_PENDING_MAX: Final = 1_024  # Of a shard.
STREAM_MESSAGES_MAX: Final = 1_000_000  # Beyond, publishing fails and senders wait.
MESSAGE_SECONDS_MAX: Final = 86_400  # Less than ids of messages are known.
DEDUP_SECONDS: Final = 120

PIN_HEADER: Final = "Nats-Pin-Id"
ID_HEADER: Final = "Nats-Msg-Id"
ACK: Final = b"+ACK"
ACK_TOKENS: Final = 9  # $JS.ACK.stream.consumer.delivered.sequence.sequence.time.pending

_encode: Final = msgspec.json.Encoder().encode


class PullStatus(Enum):
    """What the server says instead of a message."""

    ENDED = "ended"  # The pull is over, and nothing is wrong.
    OTHER_PINNED = "other_pinned"
    GONE = "gone"  # The stream or the consumer is not there.


class Delivered(NamedTuple):
    """A message of a shard, and how many times it was delivered."""

    shard: int
    data: bytes
    ack_to: str
    pin: str
    times: int
    pending: int  # Further messages of the shard.


class PullEnded(NamedTuple):
    """A pull of a shard that gets nothing more."""

    shard: int
    status: PullStatus


class _Failure(msgspec.Struct):
    description: str = ""
    err_code: int = 0


class _ApiAnswer(msgspec.Struct):
    error: _Failure | None = None
    seq: int = 0


_answer: Final = msgspec.json.Decoder(_ApiAnswer)


class JetStreamError(UnavailableError):
    """JetStream has refused a request."""


def name_subject(shard: int) -> str:
    return f"brain.{shard}"


def name_consumer(shard: int) -> str:
    return f"shard-{shard:02d}"


def check_answer(data: bytes) -> int:
    """Return the sequence number in an answer of JetStream's, or raise JetStreamError."""
    try:
        answer = _answer.decode(data)
    except msgspec.DecodeError as error:
        raise JetStreamError("JetStream is not there.") from error
    if answer.error is not None:
        raise JetStreamError(f"JetStream: {answer.error.description} ({answer.error.err_code})")
    return answer.seq


async def ensure_stream(connection: Messaging, *, replicas: int = 1) -> None:
    """Make the stream and its consumers where they are missing; UnavailableError where that fails."""
    stream = {
        "name": STREAM,
        "subjects": [SUBJECTS],
        "retention": "workqueue",
        "storage": "file",
        "num_replicas": replicas,
        "max_msgs": STREAM_MESSAGES_MAX,
        "max_age": MESSAGE_SECONDS_MAX * SECOND,
        "duplicate_window": DEDUP_SECONDS * SECOND,
        "discard": "new",
    }
    check_answer(await connection.request(f"$JS.API.STREAM.CREATE.{STREAM}", _encode(stream)))
    for shard in range(SHARDS):
        name, subject = name_consumer(shard), name_subject(shard)
        request = {
            "stream_name": STREAM,
            "config": {
                "name": name,
                "durable_name": name,
                "filter_subject": subject,
                "ack_policy": "explicit",
                "ack_wait": ACK_SECONDS * SECOND,
                "max_ack_pending": ACK_PENDING_MAX,
                "priority_policy": "pinned_client",
                "priority_groups": [GROUP],
                "priority_timeout": PIN_SECONDS * SECOND,
            },
        }
        check_answer(
            await connection.request(f"$JS.API.CONSUMER.CREATE.{STREAM}.{name}.{subject}", _encode(request))
        )


async def pull(  # noqa: PLR0913 - what a pull says
    connection: Messaging, shard: int, *, inbox: str, pin: str | None, count_max: int, seconds: float
) -> bool:
    """Ask for messages of a shard; they come to `<inbox>.<shard>`. Return whether the question is on its way."""
    request: dict[str, object] = {"batch": count_max, "expires": int(seconds * SECOND), "group": GROUP}
    if pin is not None:
        request["id"] = pin
    subject = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{name_consumer(shard)}"
    return await connection.publish(subject, _encode(request), reply=f"{inbox}.{shard}")


async def unpin(connection: Messaging, shard: int) -> None:
    """Take the pin from whichever client has it: the next message goes to another one that pulls."""
    answer = await connection.request(
        f"$JS.API.CONSUMER.UNPIN.{STREAM}.{name_consumer(shard)}", _encode({"group": GROUP})
    )
    check_answer(answer)


def read_pulled(received: Received) -> Delivered | PullEnded:
    """Tell a message from what the server says about a pull."""
    status = received.headers.get("Status")
    if status is not None or not received.reply.startswith("$JS.ACK."):
        shard = int(received.subject.rpartition(".")[2])
        return PullEnded(shard, _find_status(status, received.headers))
    tokens = received.reply.split(".")
    return Delivered(
        shard=int(received.subject.rpartition(".")[2]),
        data=received.data,
        ack_to=received.reply,
        pin=received.headers.get(PIN_HEADER, ""),
        # Servers of an account with domains put two more tokens in front, and a random one behind.
        times=int(tokens[4 if len(tokens) == ACK_TOKENS else 6]),
        pending=int(tokens[8 if len(tokens) == ACK_TOKENS else 10]),
    )


def _find_status(status: str | None, headers: Mapping[str, str]) -> PullStatus:
    if status == "423":
        return PullStatus.OTHER_PINNED
    is_gone = status == "503" or "Consumer" in headers.get("Description", "")
    return PullStatus.GONE if is_gone else PullStatus.ENDED


def encode_nak(seconds: float) -> bytes:
    """Return an answer to a message that should be delivered again, after some time."""
    return b"-NAK " + _encode({"delay": int(seconds * SECOND)})
