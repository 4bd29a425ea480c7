"""Errors of looking after the installation, and what a dead letter says."""

from typing import Final

import msgspec

from adloom.core.actor import Actor, Role
from adloom.core.errors import FieldProblem, ForbiddenError, NotFoundError, ValidationFailedError
from adloom.events.log.event import UnreadableEntryError, decode_event
from adloom.events.projections.dead_letters import DeadLetter, unwrap_redelivery

BYTES_SHOWN_MAX: Final = 2_000


class DeadLetterNotFoundError(NotFoundError):
    """No such dead letter: it was tried again, or forgotten."""

    code = "DEAD_LETTER_NOT_FOUND"


def check_letter_id(letter_id: str) -> str:
    """Return the id, or raise ValidationFailedError."""
    millis, dash, sequence = letter_id.partition("-")
    if not (dash and _is_number(millis) and _is_number(sequence)):
        message = "must look like 1794720000000-0"
        raise ValidationFailedError(f"The id {message}.", errors=[FieldProblem("letterId", message)])
    return letter_id


def event_text(letter: DeadLetter) -> str:
    """Show the event of a dead letter, if it can be decoded."""
    again = unwrap_redelivery(letter.data)
    data = again.data if again is not None else letter.data
    try:
        happening = decode_event(data)
    except UnreadableEntryError:
        return f"unreadable, {len(data)} bytes: {data[:BYTES_SHOWN_MAX]!r}"
    said = {name: value for name, value in msgspec.structs.asdict(happening).items() if value}
    shown = {"kind": type(happening).__name__, **said}
    return msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20  # noqa: PLR2004 - as many as 64 bits have


def check_sees_all(actor: Actor) -> None:
    if not actor.sees_all:
        raise ForbiddenError("Only admins and viewers see how the installation is doing.")


def check_admin(actor: Actor) -> None:
    if actor.role is not Role.ADMIN:
        raise ForbiddenError("Only an admin may see and do this.")
