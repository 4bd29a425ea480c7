"""Many reports in one body: each is decoded and judged by itself, so that a bad one costs only itself."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Raw

from adloom.core.errors import AdloomError, FieldProblem, ValidationFailedError
from adloom.events.ingest.request import ClickRequest, ImpressionRequest
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import FastAnswer, encode_head

EVENTS_MAX: Final = 500
BODY_BYTES_MAX: Final = 1024 * 1024
# Each value of a list is an object of ours before it is known to be one too many, so their number is
# bounded by what separates them. All the events that we take, with all their fields, have 7,000.
COMMAS_MAX: Final = 50_000

_EXPECTED: Final = f"Expected a list of at most {EVENTS_MAX} events."
_HEAD: Final = encode_head(HTTPStatus.ACCEPTED, b"application/json")

Report: TypeAlias = ImpressionRequest | ClickRequest


class BatchRequest(msgspec.Struct, frozen=True):
    """Events of both kinds, none of them looked into yet."""

    events: Annotated[list[Raw], Meta(max_length=EVENTS_MAX)]


class _Kind(msgspec.Struct, frozen=True, gc=False):
    type: Literal["impression", "click"]


class RejectedEvent(msgspec.Struct, frozen=True, rename="camel"):
    """An event of a batch that was not accepted, by its place, and why."""

    index: int
    error_code: str
    message: str


class _Outcome(msgspec.Struct, frozen=True):
    accepted: int
    rejected: Sequence[RejectedEvent]


_decode_batch: Final = msgspec.json.Decoder(BatchRequest).decode
_decode_kind: Final = msgspec.json.Decoder(_Kind).decode
_encode: Final = msgspec.json.Encoder().encode
_impressions: Final = BodyDecoder(ImpressionRequest, called="event")
_clicks: Final = BodyDecoder(ClickRequest, called="event")


def split_batch(body: bytes) -> Sequence[Raw]:
    """Take a batch apart, or raise what is wrong with it as a whole."""
    if body.count(b",") > COMMAS_MAX:
        raise _build_shape_error()
    try:
        return _decode_batch(body).events
    except msgspec.ValidationError as error:
        if not body.lstrip().startswith(b"{"):
            raise ValidationFailedError("The body must be a JSON object.") from error
        raise _build_shape_error() from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValidationFailedError(f"The body is not JSON that can be read: {error}.") from error


def decode_report(event: bytes) -> Report:
    """Decode one event by its type, or raise what is wrong with it."""
    try:
        kind = _decode_kind(event).type
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if not event.startswith(b"{"):
            raise ValidationFailedError("The event must be a JSON object.") from error
        problem = FieldProblem("type", "Expected `impression` or `click`.")
        raise ValidationFailedError("The event has no type that we know.", errors=[problem]) from error
    return _impressions.decode(event) if kind == "impression" else _clicks.decode(event)


class EventBatch:
    """A batch under way: the entries for the ledger of what was accepted so far, and what was not."""

    def __init__(self, events: Sequence[Raw], accept: Callable[[Report], bytes]) -> None:
        self._events = events
        self._accept = accept
        self._next = 0
        self.entries: list[bytes] = []
        self.rejected: list[RejectedEvent] = []

    @property
    def is_finished(self) -> bool:
        """Whether every event was judged."""
        return self._next == len(self._events)

    def process(self, count: int) -> None:
        """Judge the next few events."""
        start, self._next = self._next, min(self._next + count, len(self._events))
        for index in range(start, self._next):
            try:
                entry = self._accept(decode_report(bytes(self._events[index])))
            except AdloomError as error:
                self.rejected.append(RejectedEvent(index, error.code, _format_message(error)))
            else:
                self.entries.append(entry)

    def build_answer(self) -> FastAnswer:
        """Say what became of the events; true as soon as the accepted ones are durable."""
        return FastAnswer(_HEAD, _encode(_Outcome(len(self.entries), self.rejected)))


def _build_shape_error() -> ValidationFailedError:
    problem = FieldProblem("events", _EXPECTED)
    return ValidationFailedError("The body has fields that are missing or wrong: events.", errors=[problem])


def _format_message(error: AdloomError) -> str:
    """Put the fields that are wrong into the message: a rejection has no list of them."""
    return " ".join(f"{problem.field}: {problem.message}" for problem in error.errors) or error.detail
