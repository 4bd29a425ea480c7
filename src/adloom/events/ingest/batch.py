"""Many reports in one body: each is decoded and judged by itself, so that a bad one costs only itself."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Raw

from adloom.core.errors import AdloomError, FieldProblem, UnavailableError, ValidationFailedError
from adloom.events.ingest.accept import ClickRequest, ImpressionRequest, Report
from adloom.events.ingest.conversion_reports import ConversionRequest
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import FastAnswer, encode_head

EVENTS_MAX: Final = 500
BODY_BYTES_MAX: Final = 1024 * 1024
# Each value of a list is an object before we know that it is one too many, so commas bound their number.
# All the events that we take, with all their fields, have 7,000.
COMMAS_MAX: Final = 50_000
SLICE_EVENTS: Final = 32  # About half a millisecond, which all other requests may have to wait.
WAITING_MAX: Final = 64  # Beyond this we answer 503: these are up to 64 MiB and half a second.

_EXPECTED: Final = f"Expected a list of at most {EVENTS_MAX} events."
_HEAD: Final = encode_head(HTTPStatus.ACCEPTED, b"application/json")


class BatchRequest(msgspec.Struct, frozen=True):
    """Events of all kinds, not yet decoded."""

    events: Annotated[list[Raw], Meta(max_length=EVENTS_MAX)]


class _Kind(msgspec.Struct, frozen=True, gc=False):
    type: Literal["impression", "click", "conversion"]


class BatchRejection(msgspec.Struct, frozen=True, rename="camel"):
    """An event of a batch that was not accepted, by its place, and why."""

    index: int
    error_code: str
    message: str


class BatchAnswer(msgspec.Struct, frozen=True):
    """What became of a batch; the events that were accepted are in the event log."""

    accepted: int
    rejected: list[BatchRejection]


BatchReport: TypeAlias = Report | ConversionRequest

_decode_batch: Final = msgspec.json.Decoder(BatchRequest).decode
_decode_kind: Final = msgspec.json.Decoder(_Kind).decode
_encode: Final = msgspec.json.Encoder().encode
_impressions: Final = BodyDecoder(ImpressionRequest, called="event")
_clicks: Final = BodyDecoder(ClickRequest, called="event")
_conversions: Final = BodyDecoder(ConversionRequest, called="event")


def split_batch(body: bytes) -> Sequence[Raw]:
    """Return the events of a batch, undecoded; raise what is wrong with it as a whole."""
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


def decode_report(event: bytes) -> BatchReport:
    """Decode one event by its type, or raise what is wrong with it."""
    try:
        kind = _decode_kind(event).type
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if not event.startswith(b"{"):
            raise ValidationFailedError("The event must be a JSON object.") from error
        problem = FieldProblem("type", "Expected `impression`, `click` or `conversion`.")
        raise ValidationFailedError("The event has no type that we know.", errors=[problem]) from error
    if kind == "conversion":
        return _conversions.decode(event)
    return _impressions.decode(event) if kind == "impression" else _clicks.decode(event)


class ReportBatch:
    """A batch under way: the log entries of the events accepted so far, and the rejected events."""

    def __init__(self, events: Sequence[Raw], accept: Callable[[BatchReport], bytes]) -> None:
        self._events = events
        self._accept = accept
        self._next = 0
        self.entries: list[bytes] = []
        self.rejected: list[BatchRejection] = []

    @property
    def is_finished(self) -> bool:
        return self._next == len(self._events)

    def process(self, count: int) -> None:
        start, self._next = self._next, min(self._next + count, len(self._events))
        for index in range(start, self._next):
            try:
                entry = self._accept(decode_report(bytes(self._events[index])))
            except AdloomError as error:
                self.rejected.append(BatchRejection(index, error.code, _format_message(error)))
            else:
                self.entries.append(entry)

    def build_answer(self) -> FastAnswer:
        """Build the answer, which is true as soon as the accepted events are durable."""
        return FastAnswer(_HEAD, _encode(BatchAnswer(len(self.entries), self.rejected)))


class _WaitingBatch(msgspec.Struct, frozen=True, eq=False):
    batch: ReportBatch
    finish: Callable[[], asyncio.Future[FastAnswer]]
    answered: asyncio.Future[FastAnswer]


class BatchSlicer:
    """Processes large batches one after another, a slice per iteration of the event loop, so that other requests go on."""

    def __init__(self, *, slice_events: int = SLICE_EVENTS, waiting_max: int = WAITING_MAX) -> None:
        self._slice_events = slice_events
        self._waiting_max = waiting_max
        self._waiting: deque[_WaitingBatch] = deque()

    def run(
        self, batch: ReportBatch, finish: Callable[[], asyncio.Future[FastAnswer]]
    ) -> asyncio.Future[FastAnswer]:
        """Process a batch and finish it; the future has the result of `finish`."""
        if len(self._waiting) >= self._waiting_max:
            raise UnavailableError("Too many batches are waiting; please send it again.")
        loop = asyncio.get_running_loop()
        work = _WaitingBatch(batch, finish, loop.create_future())
        self._waiting.append(work)
        if len(self._waiting) == 1:
            loop.call_soon(self._run_slice)
        return work.answered

    def _run_slice(self) -> None:
        work = self._waiting[0]
        try:
            work.batch.process(self._slice_events)
            is_finished = work.batch.is_finished
            if is_finished:
                work.finish().add_done_callback(lambda done: _copy_result(done, work.answered))
        except Exception as error:  # noqa: BLE001 - the callback's outermost frame: its client must not hang
            is_finished = True
            if not work.answered.done():
                work.answered.set_exception(error)
        if is_finished:
            self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._run_slice)


def _copy_result(done: asyncio.Future[FastAnswer], answered: asyncio.Future[FastAnswer]) -> None:
    error = None if done.cancelled() else done.exception()
    if answered.done():
        return
    if done.cancelled():
        answered.cancel()
    elif error is not None:
        answered.set_exception(error)
    else:
        answered.set_result(done.result())


def _build_shape_error() -> ValidationFailedError:
    problem = FieldProblem("events", _EXPECTED)
    return ValidationFailedError("The body has fields that are missing or wrong: events.", errors=[problem])


def _format_message(error: AdloomError) -> str:
    """Put the fields that are wrong into the message: a rejection has no list of them."""
    return " ".join(f"{problem.field}: {problem.message}" for problem in error.errors) or error.detail
