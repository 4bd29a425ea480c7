"""The answer that is a stream of server-sent events."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog
from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from adloom.core.errors import UnauthenticatedError
from adloom.runtime.http.event_feed import LISTENING, LISTENING_SECONDS_MAX, EventFeed, EventListener
from adloom.runtime.postgres import POSTGRES_AWAY

EVENT_STREAM: Final = "text/event-stream"
# How often it is asked whether the token of a stream still holds.
ACCESS_SECONDS: Final = 5.0
# For a client that does not read: the feed drops it at once, its connection ends after this.
CUT_AFTER_SECONDS: Final = LISTENING_SECONDS_MAX + 60.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class EventStream(StreamingResponse):
    """The body of a stream."""

    media_type = EVENT_STREAM

    def __init__(self, feed: EventFeed[Any], listener: EventListener, status_code: int = 200) -> None:
        # The framework reads the status off this signature. A proxy that buffers whole answers
        # would never pass this one on.
        super().__init__(listener.stream_updates(), status_code, headers={"X-Accel-Buffering": "no"})
        self._feed = feed
        self._listener = listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client or the server ends the stream, or its token holds no more."""
        checking = asyncio.ensure_future(self._end_with_access(Request(scope).state.authenticate))
        try:
            with contextlib.suppress(TimeoutError), self._feed.listen(self._listener):
                async with asyncio.timeout(CUT_AFTER_SECONDS):
                    await super().__call__(scope, receive, send)
        finally:
            checking.cancel()

    async def _end_with_access(self, authenticate: Callable[[], Awaitable[object]]) -> None:
        """End the stream when its token holds no more; while that cannot be known it goes on."""
        while not self._listener.is_over:
            await asyncio.sleep(ACCESS_SECONDS)
            try:
                await authenticate()
            except UnauthenticatedError:
                self._listener.end()
            except POSTGRES_AWAY as error:
                log.warning("stream_not_checked", error=repr(error))


def describe_events(data_schema: dict[str, Any], *names: str) -> dict[int | str, dict[str, Any]]:
    """Describe a stream for the `responses` of its route, as OpenAPI 3.2 will describe server-sent events."""
    described = {
        # `itemSchema` in OpenAPI 3.2, which few programs read yet. A `schema` would be taken for that of an event.
        "x-itemSchema": {
            "type": "object",
            "required": ["event", "data"],
            "properties": {
                "event": {"type": "string", "enum": ["listening", *names]},
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": data_schema,
                },
            },
        },
        "example": LISTENING.decode(),
    }
    return {200: {"description": "Server-sent events.", "content": {EVENT_STREAM: described}}}
