"""One connection of the delivery plane: fast routes are answered in place, everything else by the ASGI app.

A subclass of uvicorn's protocol. Parsing is in `request_parser`; here are order, flow and time:
answers leave in the order of their requests, nothing is read that cannot be answered yet, and one timer
per connection looks after every deadline.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, cast

from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from adloom.core.errors import UnavailableError
from adloom.runtime.http.fast.app_cycle import build_cycle
from adloom.runtime.http.fast.errors import (
    RequestRejectedError,
    RequestTimeoutError,
    answer_error,
    on_resolved,
)
from adloom.runtime.http.fast.fast_routes import (
    DEFAULT_LIMITS,
    DeferredAnswer,
    FastAnswer,
    FastRequest,
    FastResult,
    FastRoute,
    FastRoutes,
    Limits,
    PendingAnswer,
    make_problem_answer,
)
from adloom.runtime.http.fast.fixed_headers import FixedHeaders
from adloom.runtime.http.fast.known_heads import KnownHeads
from adloom.runtime.http.fast.request_parser import CLOSES, STAYS_OPEN_FOR_1_0, Phase, RequestParser
from adloom.runtime.http.fast.tick_batch import TickBatch

DRAIN_SECONDS_MAX = 1.0  # For a request that is half here when the server stops; then it is let go.
LINGER_SECONDS = 0.5  # For the next request of a connection that had one, or came, within the same time.

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_IDLE = Phase.IDLE


class FastProtocol(HttpToolsProtocol):
    """A connection; made concrete by `make_protocol`."""

    fast_routes: ClassVar[FastRoutes]
    limits: ClassVar[Limits]
    tick_seconds: ClassVar[float]
    fixed_headers: ClassVar[FixedHeaders]
    tick_batch: ClassVar[TickBatch]
    known_heads: ClassVar[KnownHeads]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._time = self.loop.time
        self._piece_bytes_max = self.limits.parse_bytes_max
        self._seconds_max = {
            Phase.IDLE: self.limits.keep_alive_seconds_max,
            Phase.HEAD: self.limits.header_seconds_max,
            Phase.BODY: self.limits.body_seconds_max,
        }
        self._parser: RequestParser
        self._timer: asyncio.TimerHandle | None = None

        # Blocked: a request waits for its answer or the client has to read first. `_advance` ends it.
        self._is_blocked = self._is_app_running = False
        self._pending: tuple[PendingAnswer | None, FastRequest, bytes] | None = None
        self._waiting: deque[Callable[[], None]] = deque()
        self._held = b""
        self._owes_continue = False
        self._is_draining = False
        self._leaving_since, self._blocked_since, self._discarded_bytes = math.inf, 0.0, 0

    # The transport's side.

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  uvicorn narrows it so
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections_max:
            transport.abort()
        transport.set_write_buffer_limits(high=self.limits.write_buffer_bytes_max)
        client = self.client[0] if self.client else None
        self._parser = RequestParser(self, self.fast_routes, self.limits, client, self.known_heads)
        self._parser.phase_since = self._time()
        self._timer = self.loop.call_later(self.tick_seconds, self._on_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop all state; a pending future then changes nothing."""
        if self._timer is not None:
            self._timer.cancel()
        self._pending = None
        self._waiting.clear()
        self._held = b""
        self._parser.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, or hold the bytes until earlier requests are answered."""
        if len(data) <= self._piece_bytes_max and not (self._is_blocked or self._parser.is_finished):
            try:  # As `_read` does, without the call.
                self._parser.feed(data, self._time())
            except RequestRejectedError as refusal:
                self._refuse(refusal.answer)
        elif self._parser.is_finished:
            self._discard(data)
        elif self._is_blocked:
            self._held += data
            self.transport.pause_reading()
        else:
            self._read(data)

    def eof_received(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]  asyncio allows it
        """Stay open for answers that are due: the client may have closed only its half."""
        self._is_draining = self._parser.is_finished = True
        return self._is_blocked and self.scheme == "http"

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._is_blocked = True
        self._blocked_since = self._time()

    def resume_writing(self) -> None:
        """Continue in the next tick: this may be called from within a write."""
        self.flow.resume_writing()
        self.loop.call_soon(self._advance)

    def shutdown(self) -> None:
        """Close when everything that has arrived is answered, at once if nothing is to be expected.

        A connection in use may have a request on its way: it is answered, with `connection: close`.
        """
        self._is_draining = True
        if self._is_blocked:
            if self._is_app_running and not self._waiting:
                self.cycle.keep_alive = False
        elif self._parser.phase is not _IDLE and not self._parser.is_finished:
            self.loop.call_later(DRAIN_SECONDS_MAX, self._on_drain_end)
        elif self._parser.is_finished or self._time() - self._parser.phase_since > LINGER_SECONDS:
            self.transport.close()
        else:
            self.loop.call_later(LINGER_SECONDS, self._on_drain_end)

    def _on_drain_end(self) -> None:
        if not self._is_blocked:
            self.transport.close()

    # Reading.

    def _read(self, data: bytes) -> None:
        """Parse in pieces, so that a busy connection queues no more than one of them holds."""
        now = self._time()
        size = self._piece_bytes_max
        try:
            view = memoryview(data) if len(data) > size else data
            for start in range(0, len(data), size):
                if start >= self.limits.turn_bytes_max and not self._is_blocked:
                    self._is_blocked = True
                    self.loop.call_soon(self._advance)
                if self._is_blocked:
                    self._held = data[start:]
                    self.transport.pause_reading()
                    return
                if self._parser.is_finished:
                    return
                self._parser.feed(view[start : start + size], now)
        except RequestRejectedError as refusal:
            self._refuse(refusal.answer)

    def _discard(self, data: bytes) -> None:
        self._discarded_bytes += len(data)
        if self._discarded_bytes > self.limits.discard_bytes_max:
            self.transport.abort()

    def _refuse(self, answer: FastAnswer) -> None:
        """Reject what cannot be parsed any further, after the answers before it."""
        self._parser.is_finished = True
        if self._is_blocked:
            self._waiting.append(partial(self._write_last, answer))
        else:
            self._write_last(answer)

    def on_expectation(self) -> None:
        """Send 100 Continue now, or after the answers that are due."""
        if self._is_blocked:
            self._owes_continue = True
        else:
            self.transport.write(_CONTINUE)

    def on_request(self, request: FastRequest, route: FastRoute | None, connection: bytes) -> None:
        """Answer in place, where nothing is before it and the handler has the answer; all in one function."""
        if self._is_blocked:
            self._owes_continue = False
            self._waiting.append(partial(self.on_request, request, route, connection))
            return
        if route is None:
            self._run_app(request, connection)
            return
        if route.is_batched and self.tick_batch.record_arrival(now := self._time()):
            self._pending, self._is_blocked, self._blocked_since = (None, request, connection), True, now
            self.tick_batch.add(self, route.handler, request)
            return
        try:
            outcome = route.handler(request)
        except Exception as error:  # noqa: BLE001 - the outermost frame of a fast request
            outcome = answer_error(error)
        if type(outcome) is DeferredAnswer and outcome.answer is None:  # Every event waits for the log.
            self._pending = (outcome, request, connection)
            self._is_blocked = True
            self._blocked_since = self._time()
            outcome.calls += (self._on_answer,)
        elif type(outcome) is not FastAnswer:
            self._handle_result(outcome, request, connection)
        elif self._is_draining or connection is CLOSES or request.method == b"HEAD":
            self._write(outcome, request, connection)
        else:  # As `_write` does.
            state = self.server_state
            state.total_requests += 1
            self.transport.write(self.fixed_headers.encode(outcome, connection, state.default_headers))

    # Answering.

    def on_result(self, request: FastRequest, outcome: FastResult) -> None:
        """Take the result of a request that was answered in a batch."""
        if self._pending is None or self._pending[1] is not request:
            return  # The client has gone.
        if type(outcome) is FastAnswer:
            self._on_answer(None, outcome)
        else:
            self._handle_result(outcome, request, self._pending[2])

    def _handle_result(self, outcome: FastResult, request: FastRequest, connection: bytes) -> None:
        if isinstance(outcome, FastAnswer):
            self._write(outcome, request, connection)
        elif outcome is None:
            self._pending = None
            self._run_app(request, connection)
        else:
            self._pending, self._is_blocked = (outcome, request, connection), True
            self._blocked_since = self._time()
            on_resolved(outcome, self._on_answer)

    def _on_answer(self, come: PendingAnswer | None, answer: FastAnswer) -> None:
        pending = self._pending
        if pending is None or pending[0] is not come:
            return  # The client has gone, or has been told that it took too long.
        self._pending, (_, request, connection) = None, pending
        transport = self.transport
        if transport.is_closing():
            return
        if self._waiting or self._held or self._is_draining or self._owes_continue or connection:
            self._write(answer, request, connection)
            self._advance()
            return
        # As `_write` and `_advance` do, where the client waits for nothing else.
        state, has_body = self.server_state, request.method != b"HEAD"
        state.total_requests += 1
        transport.write(self.fixed_headers.encode(answer, connection, state.default_headers, has_body))
        if not self.flow.write_paused:
            self._is_blocked = False
            self._parser.phase_since = self._time()
            transport.resume_reading()

    def _run_app(self, request: FastRequest, connection: bytes) -> None:
        """Let the ASGI app answer; it gets the whole body."""
        self._is_app_running = self._is_blocked = True
        stays_open = connection not in (CLOSES, STAYS_OPEN_FOR_1_0)  # The cycle does not speak HTTP/1.0.
        headers = self.fixed_headers.refresh(self.server_state.default_headers).pairs
        is_last = self._is_draining and not self._waiting
        self.cycle = cycle = build_cycle(self, request, headers, stays_open=stays_open and not is_last)
        limit = self.limit_concurrency
        is_full = limit is not None and (len(self.connections) >= limit or len(self.tasks) >= limit)
        self._start_asgi_task(cycle, cast("ASGI3Application", service_unavailable if is_full else self.app))

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        self._is_app_running = False
        self._advance()

    def _advance(self) -> None:
        """Continue with what waits: requests first, then bytes, then the socket."""
        while not (
            self._pending is not None
            or self._is_app_running
            or self.flow.write_paused
            or self.transport.is_closing()
        ):
            self._is_blocked = False
            if self._waiting:
                self._waiting.popleft()()
                continue
            if not self._held or self._parser.is_finished:
                break
            held, self._held = self._held, b""
            self._read(held)
            if not self._is_blocked:
                break
        if not self._is_blocked and not self.transport.is_closing():
            self._listen()

    def _listen(self) -> None:
        """Wait for the client again; its time starts now."""
        self._parser.phase_since = self._time()
        if self._owes_continue:
            self._owes_continue = False
            self.transport.write(_CONTINUE)
        if self._is_draining and (self._parser.phase is _IDLE or self._parser.is_finished):
            self.transport.close()
        else:
            self.transport.resume_reading()

    # Writing.

    def _write(self, answer: FastAnswer, request: FastRequest, connection: bytes) -> None:
        if self._is_draining and not self._waiting:
            connection = CLOSES
        state, has_body = self.server_state, request.method != b"HEAD"
        state.total_requests += 1
        self.transport.write(self.fixed_headers.encode(answer, connection, state.default_headers, has_body))
        if connection is CLOSES:
            self._parser.is_finished = True
            self.transport.close()

    def _write_last(self, answer: FastAnswer) -> None:
        """Write a rejection and read on until the client ends: closing on unread bytes would discard the answer."""
        self.server_state.total_requests += 1
        self.transport.write(self.fixed_headers.encode(answer, CLOSES, self.server_state.default_headers))
        if self._is_draining or not self.transport.can_write_eof():
            self.transport.close()
        else:
            self.transport.write_eof()

    # Time.

    def _on_timer(self) -> None:
        """Check the deadline at least once a tick: no deadline is nearer than that."""
        now = self._time()
        due = self._find_deadline(now)
        if now >= due:
            self._expire()
            due = now + self.tick_seconds
        self._timer = self.loop.call_later(min(due - now, self.tick_seconds), self._on_timer)

    def _is_leaving(self) -> bool:
        return self.transport.is_closing() or (self._parser.is_finished and not self._is_blocked)

    def _find_deadline(self, now: float) -> float:
        if self._is_leaving():
            self._leaving_since = min(self._leaving_since, now)
            return self._leaving_since + self.tick_seconds
        if self.flow.write_paused:
            return self._blocked_since + self.limits.write_seconds_max
        if self._pending is not None:
            return self._blocked_since + self.limits.answer_seconds_max
        if self._is_app_running:
            return math.inf  # The ASGI app takes the time that it takes.
        return self._parser.phase_since + self._seconds_max[self._parser.phase]

    def _expire(self) -> None:
        if self._is_leaving() or self.flow.write_paused:
            self.transport.abort()
        elif self._pending is not None:
            request, self._pending = self._pending[1], None
            self._write(make_problem_answer(UnavailableError("The answer took too long.")), request, CLOSES)
        elif self._parser.phase is _IDLE:
            self.transport.close()
        else:
            self._refuse(make_problem_answer(RequestTimeoutError("The request did not arrive in time.")))


def make_protocol(routes: FastRoutes, limits: Limits = DEFAULT_LIMITS) -> type[FastProtocol]:
    """Make the class that `uvicorn.Config(http=…)` takes."""

    class DeliveryProtocol(FastProtocol):
        fast_routes = routes
        fixed_headers = FixedHeaders()
        tick_batch = TickBatch()
        known_heads = KnownHeads()
        tick_seconds = limits.tick_seconds

    DeliveryProtocol.limits = limits
    return DeliveryProtocol
