"""Errors of looking after the installation, and what a dead letter says."""

import re
from typing import Final

import msgspec

from adloom.core.errors import FieldProblem, NotFoundError, ValidationFailedError
from adloom.events.log.event import UnreadableEntryError, decode_event
from adloom.events.projections.dead_letters import DeadLetter, unwrap_redelivery

BYTES_SHOWN_MAX: Final = 2_000
_LETTER_ID: Final = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")  # As many digits as 64 bits have.


class DeadLetterNotFoundError(NotFoundError):
    """No such dead letter: it was tried again, or forgotten."""

    code = "DEAD_LETTER_NOT_FOUND"


def check_letter_id(letter_id: str) -> str:
    """Return the id, or raise ValidationFailedError."""
    if not is_letter_id(letter_id):
        message = "must look like 1794720000000-0"
        raise ValidationFailedError(f"The id {message}.", errors=[FieldProblem("letterId", message)])
    return letter_id


def render_event(letter: DeadLetter) -> str:
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


def is_letter_id(text: str) -> bool:
    return _LETTER_ID.fullmatch(text) is not None
