"""What happens to every request of the control plane: id, limits, headers, one line in the log."""

import re
import time
from typing import Any, Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adloom.core.errors import BodyTooLargeError
from adloom.core.ids import IdSource
from adloom.runtime.http.api.exception_handlers import build_problem_response
from adloom.runtime.http.fast.errors import InternalFailureError
from adloom.runtime.telemetry.tracing import open_request_span

BODY_BYTES_MAX: Final = 1024 * 1024
# Documents of a whole catalog are larger than any other body.
BODY_BYTES_MAX_AT: Final = {"/admin/import": 64 * 1024 * 1024, "/admin/assets": 64 * 1024 * 1024}
# Files that people choose in the console; what it does not wait for is not read.
UPLOAD: Final = re.compile(r"/_nicegui/client/[^/]+/upload/\d+")
SANE_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{8,64}")
# The console under `/` runs scripts and styles of its own; what these paths answer runs nothing.
API_PATHS: Final = ("/admin", "/api", "/auth", "/banners", "/health", "/v1", "/openapi.json")
HEADERS_EVERYWHERE: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
HEADERS_OF_THE_API: Final = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
STRICT_TRANSPORT: Final = {"Strict-Transport-Security": "max-age=31536000"}

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class RequestPipeline:
    """The outermost layer: nothing gets past it without an id, an answer and a line in the log."""

    def __init__(self, app: ASGIApp, *, ids: IdSource, answered: dict[str, int], is_https: bool) -> None:
        self._app = app
        self._ids = ids
        self._answered = answered
        self._scheme = "https" if is_https else "http"
        self._headers = {**HEADERS_EVERYWHERE, **(STRICT_TRANSPORT if is_https else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = self._read_request_id(headers)
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                self._add_headers(MutableHeaders(scope=message), scope["path"], request_id)
            await send(message)

        started = time.perf_counter()
        with (
            structlog.contextvars.bound_contextvars(request_id=request_id),
            open_request_span(
                scope["method"],
                headers.get("traceparent"),
                scheme=self._scheme,
                version=scope["http_version"],
            ) as span,
        ):
            try:
                await self._app(
                    scope,
                    _limit_body(headers, receive, find_bytes_max(scope["path"])),
                    send_with_headers,
                )
            except Exception:
                log.exception("request_failed")
                if not status:
                    error = InternalFailureError(f"Something went wrong on our side (request {request_id}).")
                    await build_problem_response(error)(scope, receive, send_with_headers)
            finally:
                span.answer(status, _find_route(scope))
                self._answered[str(status)] = self._answered.get(str(status), 0) + 1
                _log_request(scope, status, time.perf_counter() - started)

    def _read_request_id(self, headers: Headers) -> str:
        given = headers.get("x-request-id", "")
        return given if SANE_REQUEST_ID.fullmatch(given) else str(self._ids.make())

    def _add_headers(self, headers: MutableHeaders, path: str, request_id: str) -> None:
        headers["X-Request-Id"] = request_id
        added = {**self._headers, **(HEADERS_OF_THE_API if path.startswith(API_PATHS) else {})}
        for name, value in added.items():
            headers.setdefault(name, value)


def find_bytes_max(path: str) -> int:
    if UPLOAD.fullmatch(path):
        return BODY_BYTES_MAX_AT["/admin/assets"]
    return BODY_BYTES_MAX_AT.get(path, BODY_BYTES_MAX)


def _limit_body(headers: Headers, receive: Receive, bytes_max: int) -> Receive:
    """Stop reading a body over its bound, whether it announced its length or not."""
    # What is not a plain number here the server has refused; then the bytes are counted.
    announced = headers.get("content-length", "")
    seen = 0

    async def receive_limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > bytes_max or (announced.isdecimal() and int(announced) > bytes_max):
            raise BodyTooLargeError(f"The body is over {bytes_max} bytes.")
        return message

    return receive_limited


def _find_route(scope: Scope) -> str | None:
    # The template, because an address may name a person.
    route: Any = scope.get("route")
    return getattr(route, "path", None) or None


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    caller: Any = scope["state"].get("caller")
    log.info(
        "request_answered",
        method=scope["method"],
        route=_find_route(scope) or "unknown",
        status=status,
        milliseconds=round(seconds * 1000, 2),
        role=caller.role.value if caller else None,
        subject=caller.subject if caller else None,
    )
