"""The answer that is a stream of server-sent events."""

import asyncio
import contextlib
from typing import Any, Final

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from adloom.runtime.http.event_feed import LISTENING, LISTENING_SECONDS_MAX, EventFeed, EventListener

EVENT_STREAM: Final = "text/event-stream"
# For a client that does not read: the feed drops it at once, its connection ends after this.
CUT_AFTER_SECONDS: Final = LISTENING_SECONDS_MAX + 60.0


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
        """Send events until the client or the server ends the stream."""
        with contextlib.suppress(TimeoutError), self._feed.listen(self._listener):
            async with asyncio.timeout(CUT_AFTER_SECONDS):
                await super().__call__(scope, receive, send)


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
