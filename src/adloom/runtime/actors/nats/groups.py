"""A delivered group as envelopes, and their results."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import structlog

from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import AnyKind, UnreadableMessageError
from adloom.runtime.actors.mailboxes import Envelope
from adloom.runtime.actors.nats.messages import (
    MessageGroup,
    MessageResult,
    SentMessage,
    UnreadableGroupError,
    decode_group,
    is_current,
)
from adloom.runtime.actors.nats.pinned import Delivered
from adloom.runtime.actors.runner import NeverKeptError

GREETING = MessageGroup(0, ())
LEFT_MAX: Final = 20  # Deliveries of a group that a worker leaves to others; then it fails for good.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class _TooOldError(UnreadableMessageError):
    """A message of which no worker knows whether it was applied."""


class DeliveredGroup(NamedTuple):
    """A group, its messages as envelopes, and the results of those that cannot be run.

    One that `is_left` to other workers is not run here at all.
    """

    delivered: Delivered
    group: MessageGroup
    envelopes: list[Envelope]
    unreadable: list[MessageResult]
    is_left: bool = False


def open_group(
    delivered: Delivered, kinds: Mapping[str, AnyKind], now: datetime, *, has_others: bool = False
) -> DeliveredGroup:
    """Decode a group; what this version cannot read is left to other workers, and fails for good if none can.

    While workers are updated, one of them can: the version that has sent it.
    """
    may_leave = has_others and delivered.times <= LEFT_MAX
    try:
        group = decode_group(delivered.data) if delivered.data else GREETING
    except UnreadableGroupError as error:
        log.warning("message_group_unreadable", shard=delivered.shard, reason=str(error), is_left=may_leave)
        return DeliveredGroup(delivered, GREETING, [], [], is_left=may_leave)
    opened = DeliveredGroup(delivered, group, [], [])
    for message in group.messages:
        try:
            opened.envelopes.append(_open_message(message, kinds, now))
        except UnreadableMessageError as error:
            is_left = may_leave and not isinstance(error, _TooOldError)
            log.warning(
                "message_unreadable", kind=message.kind, key=message.key, reason=str(error), is_left=is_left
            )
            if is_left:
                return DeliveredGroup(delivered, group, [], [], is_left=True)
            opened.unreadable.append(
                MessageResult(message.id, is_kept=False, reason=str(error), is_final=True)
            )
    return opened


def list_results(work: DeliveredGroup, kinds: Mapping[str, AnyKind]) -> list[MessageResult]:
    """List what became of the exact messages of a group, after they were run."""
    ran = [_build_result(one, kinds) for one in work.envelopes if one.id is not None]
    return [*work.unreadable, *ran]


def _open_message(message: SentMessage, kinds: Mapping[str, AnyKind], now: datetime) -> Envelope:
    kind = kinds.get(message.kind)
    if kind is None:
        raise UnreadableMessageError(f"No actors of the kind {message.kind} run here.")
    body = kind.decode_message(message.body)
    if not message.is_exact:
        return Envelope(message.address, body, is_fresh=message.is_fresh)
    if not is_current(message.id, now):
        raise _TooOldError("It is too old: whether it was applied is not known.")
    loop = asyncio.get_running_loop()
    return Envelope(
        message.address,
        body,
        answered=loop.create_future() if message.is_ask else None,
        durable=loop.create_future(),
        is_kept_after=True,
        id=message.id,
        is_fresh=message.is_fresh,
    )


def _build_result(envelope: Envelope, kinds: Mapping[str, AnyKind]) -> MessageResult:
    assert envelope.id is not None
    assert envelope.durable is not None
    error = _find_error(envelope.durable)
    no_reply = None if envelope.answered is None else _find_error(envelope.answered)
    if error is not None:
        is_final = isinstance(error, NeverKeptError)
        return MessageResult(envelope.id, is_kept=False, reason=str(error), is_final=is_final)
    if envelope.answered is None:
        return MessageResult(envelope.id, is_kept=True)
    if no_reply is not None:
        return MessageResult(envelope.id, is_kept=True, reason=str(no_reply))
    reply = kinds[envelope.address.kind].encode_message(envelope.answered.result())
    return MessageResult(envelope.id, is_kept=True, reply=reply)


def _find_error(future: "asyncio.Future[Any]") -> BaseException | None:
    if not future.done():
        return UnavailableError("It was not applied.")
    return asyncio.CancelledError() if future.cancelled() else future.exception()
