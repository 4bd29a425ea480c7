"""The console's client of the admin API: it calls the control plane's own app in process, as the logged-in user.

So roles, ownership, validation and error messages are the API's, and the console has no rights of its own.
"""

import asyncio
import contextlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from typing import Any, Final, TypeVar
from uuid import UUID

import httpx
import msgspec
from starlette.types import ASGIApp, Message

from adloom.console.words.field_labels import name_fields
from adloom.runtime.http.api.exception_handlers import find_outage

Json = dict[str, Any]
# Called before each request, with whether it changes something; raises if the session has ended.
TokenSource = Callable[[bool], Awaitable[str]]

CALL_SECONDS_MAX: Final = 30.0
BYTES: Final = "application/octet-stream"
JSON: Final = "application/json"
ORIGIN: Final = "http://console.internal"
T = TypeVar("T")
AT_ONCE_MAX: Final = 6  # Leaves database connections for others.
NAMES_MAX: Final = 120  # More names than a person reads on a page.
SHORT_ID_LENGTH: Final = 8
# The field that has the name of a noun.
NAME_FIELDS: Final = {
    "campaign": "name",
    "banner": "title",
    "placement": "label",
    "site": "domain",
    "advertiser": "name",
    "publisher": "name",
}


class SessionEndedError(Exception):
    """The session has expired or was ended elsewhere."""


class ProblemError(Exception):
    """The API refused a request; `fields` has the error of each field."""

    def __init__(self, *, status: int, code: str, message: str, fields: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.fields = dict(fields)


@contextlib.contextmanager
def problem_if_away() -> Generator[None]:
    """Raise ProblemError, as the API answers it, where the console itself does not reach the database."""
    try:
        yield
    except Exception as error:
        if (outage := find_outage(error, "GET")) is None:
            raise
        raise ProblemError(
            status=outage.status, code=outage.code, message=outage.detail, fields={}
        ) from error


class ApiClient:
    """Calls the API. Each call checks the session again, so that a log-out takes effect at once."""

    def __init__(self, app: ASGIApp, token_source: TokenSource) -> None:
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url=ORIGIN, timeout=CALL_SECONDS_MAX
        )
        self._app = app
        self._token_source = token_source

    async def get(self, path: str, **query: object) -> Json:
        """Send a GET; parameters that are None are left out, lists are repeated."""
        return await self._request_json("GET", path, query=query)

    async def get_items(self, path: str, **query: object) -> list[Json]:
        return (await self.get(path, **query))["items"]

    async def get_list(self, path: str, **query: object) -> list[Json]:
        """Send a GET to a route that answers with a bare list."""
        return msgspec.json.decode((await self._request("GET", path, query=query)).content)

    async def get_text(self, path: str, **query: object) -> str:
        return (await self._request("GET", path, query=query)).text

    async def post(self, path: str, body: object = None, **query: object) -> Json:
        return await self._request_json("POST", path, query=query, body=body)

    async def upload(self, path: str, data: bytes, *, content_type: str = BYTES, **query: object) -> Json:
        """Send the bytes of a file."""
        answer = await self._request("POST", path, query=query, body=data, content_type=content_type)
        return msgspec.json.decode(answer.content)

    async def put(self, path: str, body: object = None) -> Json:
        return await self._request_json("PUT", path, body=body)

    async def patch(self, path: str, body: object = None) -> Json:
        return await self._request_json("PATCH", path, body=body)

    async def delete(self, path: str) -> None:
        await self._request("DELETE", path)

    @contextlib.asynccontextmanager
    async def stream(self, path: str) -> AsyncGenerator[httpx.Response]:
        """Send a GET to a route that answers with a stream, and read it while the block lasts."""
        token = await self._fetch_token(is_active=False)
        async with (
            httpx.AsyncClient(transport=StreamTransport(self._app), base_url=ORIGIN, timeout=None) as client,  # noqa: S113 - a stream ends by itself
            client.stream("GET", path, headers={"Authorization": f"Bearer {token}"}) as answer,
        ):
            if answer.is_error:
                await answer.aread()
                raise parse_problem(answer)
            yield answer

    async def _fetch_token(self, *, is_active: bool) -> str:
        with problem_if_away():
            return await self._token_source(is_active)

    async def _request_json(
        self, method: str, path: str, *, query: Mapping[str, object] | None = None, body: object = None
    ) -> Json:
        answer = await self._request(method, path, query=query, body=body)
        decoded: Any = msgspec.json.decode(answer.content) if answer.content else {}
        # A few routes return a bare list.
        return {"items": decoded} if isinstance(decoded, list) else decoded

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = None,
        content_type: str = JSON,
    ) -> httpx.Response:
        token = await self._fetch_token(is_active=method != "GET")
        headers = {"Authorization": f"Bearer {token}"}
        is_file = isinstance(body, bytes)
        if body is not None:
            headers["Content-Type"] = content_type
        answer = await self._client.request(
            method,
            path,
            params=httpx.QueryParams(tuple(_query(query or {}))),
            content=body if body is None or is_file else msgspec.json.encode(body),
            headers=headers,
        )
        if answer.is_error:
            raise parse_problem(answer)
        return answer


def parse_problem(answer: httpx.Response) -> ProblemError:
    try:
        body: Json = msgspec.json.decode(answer.content, type=dict[str, Any])
    except msgspec.DecodeError:
        body = {}
    return ProblemError(
        status=answer.status_code,
        code=body.get("errorCode", ""),
        message=name_fields(body.get("message") or answer.reason_phrase),
        fields={entry["field"]: name_fields(entry["message"]) for entry in body.get("errors", [])},
    )


def _query(query: Mapping[str, object]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        values: list[object] = list(value) if isinstance(value, list | tuple) else [value]  # pyright: ignore[reportUnknownArgumentType]  whatever it has
        pairs += [(name, _write_text_value(one)) for one in values if one is not None]
    return pairs


def _write_text_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def fetch_all(asked: Sequence[Awaitable[T]]) -> list[T]:
    """Await all, a few at a time, and return the results in order; the first error is raised."""
    turn = asyncio.Semaphore(AT_ONCE_MAX)

    async def fetch_one(what: Awaitable[T]) -> T:
        async with turn:
            return await what

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(fetch_one(what)) for what in asked]
    except ExceptionGroup as failed:
        # Callers handle one API error, not a group.
        raise failed.exceptions[0] from failed
    return [task.result() for task in tasks]


async def fetch_names(api: ApiClient, noun: str, ids: Iterable[str | None]) -> dict[str, str]:
    """Return the names of items by id; an item that cannot be read gets a short form of its id."""
    wanted = sorted({one for one in ids if one})
    names = {one: shorten_id(one) for one in wanted}

    async def ask(one: str) -> None:
        try:
            names[one] = (await api.get(f"/admin/{noun}s/{one}"))[NAME_FIELDS[noun]]
        except ProblemError:
            return

    await fetch_all([ask(one) for one in wanted[:NAMES_MAX]])
    return names


def parse_id(text: str) -> str | None:
    """Return an id that an address has; anything else is none."""
    try:
        return str(UUID(text))
    except ValueError:
        return None


def shorten_id(thing_id: str) -> str:
    """Shorten an id to its end: the beginning of a UUIDv7 is a time, so it differs least."""
    return f"…{thing_id[-SHORT_ID_LENGTH:]}"


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
                # Full, and the call cancelled: the rest is not read.
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
