"""Calls of the console to the API's own app in process, whose answers are read as they come."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx
from starlette.types import ASGIApp, Message

PARTS_WAITING_MAX: Final = 100


class StreamTransport(httpx.AsyncBaseTransport):
    """Calls an app in process, and hands its answer on part by part; httpx's own waits for the end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        begun: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        parts: asyncio.Queue[bytes | None] = asyncio.Queue(PARTS_WAITING_MAX)
        is_closed = asyncio.Event()
        is_asked = False

        async def receive() -> Message:
            nonlocal is_asked
            if not is_asked:
                is_asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await is_closed.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun.set_result(message)
            elif body := message.get("body"):
                await parts.put(body)

        async def call() -> None:
            try:
                await self._app(_describe(request), receive, send)
            except Exception as error:
                if begun.done():
                    raise
                begun.set_exception(error)
            finally:
                # Full, and the call cancelled: then nobody reads on.
                with contextlib.suppress(asyncio.QueueFull):
                    parts.put_nowait(None)

        calling = asyncio.ensure_future(call())
        start = await begun
        body = _Parts(parts, calling, is_closed)
        return httpx.Response(start["status"], headers=start["headers"], stream=body)


class _Parts(httpx.AsyncByteStream):
    """The parts of an answer as they come; closed, it ends the call."""

    def __init__(
        self, parts: asyncio.Queue[bytes | None], calling: asyncio.Future[None], is_closed: asyncio.Event
    ) -> None:
        self._parts = parts
        self._calling = calling
        self._is_closed = is_closed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (part := await self._parts.get()) is not None:
            yield part

    async def aclose(self) -> None:
        self._is_closed.set()
        self._calling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._calling


def _describe(request: httpx.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.split(b"?")[0],
        "query_string": request.url.query,
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 0),
        "root_path": "",
    }
