"""A real uvicorn on a loopback port, with fast routes that echo their requests."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Generator
from http import HTTPStatus

import uvicorn
import uvloop
from msgspec.structs import replace
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

from adloom.core.errors import NotFoundError
from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    FastRequest,
    FastRoute,
    FastRoutes,
    Limits,
    encode_head,
)
from adloom.runtime.http.fast.protocol import make_protocol
from tests.support.http_wire import Wire

TEXT = encode_head(HTTPStatus.OK, b"text/plain")
LATER_SECONDS = 0.03
SLOW_SECONDS = 0.4
APP_SECONDS = {"/app/slow": LATER_SECONDS, "/app/slower": SLOW_SECONDS}
BIG_BYTES = 100_000


def _echo(request: FastRequest) -> FastAnswer:
    return FastAnswer(TEXT, b"%b %b?%b %b" % (request.method, request.path, request.query, request.body))


def _later(request: FastRequest) -> asyncio.Future[FastAnswer]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[FastAnswer] = loop.create_future()
    seconds = SLOW_SECONDS if request.path == b"/slow" else LATER_SECONDS
    loop.call_later(seconds, _settle, future, _echo(request))
    return future


def _given(request: FastRequest) -> DeferredAnswer:
    later = DeferredAnswer()
    if request.path.endswith(b"now"):
        later.resolve(_echo(request))
    else:
        asyncio.get_running_loop().call_later(LATER_SECONDS, later.resolve, _echo(request))
    return later


def _settle(future: asyncio.Future[FastAnswer], answer: FastAnswer) -> None:
    if not future.done():
        future.set_result(answer)


def _later_failing(request: FastRequest) -> asyncio.Future[FastAnswer]:
    future: asyncio.Future[FastAnswer] = asyncio.get_running_loop().create_future()
    if request.query == b"cancelled":
        future.cancel()
    elif request.query == b"missing":
        future.set_exception(NotFoundError("There is no such thing."))
    else:
        future.set_exception(RuntimeError("a secret of ours"))
    return future


def _never(_: FastRequest) -> asyncio.Future[FastAnswer]:
    return asyncio.get_running_loop().create_future()


def _missing(_: FastRequest) -> FastAnswer:
    raise NotFoundError("There is no such thing.")


def _broken(_: FastRequest) -> FastAnswer:
    raise RuntimeError("a secret of ours")


def _headers(request: FastRequest) -> FastAnswer:
    return FastAnswer(TEXT, b"|".join(b"%b=%b" % header for header in request.headers))


def _nothing(_: FastRequest) -> None:
    return None


def _gathered(request: FastRequest) -> FastAnswer | DeferredAnswer | None:
    match request.path.split(b"/")[2]:
        case b"given":
            return _given(request)
        case b"handed-on":
            return None
        case b"missing":
            return _missing(request)
        case b"broken":
            return _broken(request)
        case _:
            return _echo(request)


ROUTES = FastRoutes(
    [
        FastRoute(b"GET", b"/gathered/", is_prefix=True, handler=_gathered, is_batched=True),
        FastRoute(b"POST", b"/gathered/", is_prefix=True, handler=_gathered, is_batched=True),
        FastRoute(b"GET", b"/echo/", is_prefix=True, handler=_echo),
        FastRoute(b"POST", b"/echo", is_prefix=False, handler=_echo, body_bytes_max=1000),
        FastRoute(b"POST", b"/echo/", is_prefix=True, handler=_echo, body_bytes_max=1000),
        FastRoute(b"POST", b"/wide", is_prefix=False, handler=_echo, body_bytes_max=1_000_000),
        FastRoute(b"GET", b"/later/", is_prefix=True, handler=_later),
        FastRoute(b"POST", b"/later/", is_prefix=True, handler=_later),
        FastRoute(b"GET", b"/given/", is_prefix=True, handler=_given),
        FastRoute(b"POST", b"/given/", is_prefix=True, handler=_given),
        FastRoute(b"GET", b"/slow", is_prefix=False, handler=_later),
        FastRoute(b"GET", b"/later-failing", is_prefix=False, handler=_later_failing),
        FastRoute(b"GET", b"/never", is_prefix=False, handler=_never),
        FastRoute(b"GET", b"/missing", is_prefix=False, handler=_missing),
        FastRoute(b"GET", b"/broken", is_prefix=False, handler=_broken),
        FastRoute(b"GET", b"/headers", is_prefix=False, handler=_headers),
        FastRoute(b"GET", b"/big", is_prefix=False, handler=lambda _: FastAnswer(TEXT, b"x" * BIG_BYTES)),
        FastRoute(b"GET", b"/empty", is_prefix=False, handler=lambda _: FastAnswer(TEXT)),
        FastRoute(b"GET", b"/handed-on", is_prefix=False, handler=_nothing),
        FastRoute(b"POST", b"/handed-on", is_prefix=False, handler=_nothing),
    ]
)


async def echo_app(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Answer like the fast routes, with the prefix `app`."""
    assert scope["type"] == "http"
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return
        body += message["body"]
        if not message["more_body"]:
            break
    await asyncio.sleep(APP_SECONDS.get(scope["path"], 0))
    target = scope["raw_path"] + b"?" + scope["query_string"]
    answer = b"app " + scope["method"].encode() + b" " + target + b" " + body
    length = [] if scope["path"] == "/app/chunked" else [(b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send({"type": "http.response.body", "body": answer, "more_body": False})


class RunningServer(uvicorn.Server):
    """A server in a thread of its own, on the loop that production uses."""

    def __init__(self, limits: Limits, *, requires_host: bool = False) -> None:
        super().__init__(
            uvicorn.Config(
                echo_app,  # pyright: ignore[reportArgumentType]  uvicorn's union of scopes is wider
                # Most tests write requests by hand, without a host.
                http=make_protocol(ROUTES, limits if requires_host else replace(limits, requires_host=False)),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
            )
        )
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.faults: list[str] = []
        self._thread = threading.Thread(target=self._run_in_thread)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to pytest."""
        yield

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.should_exit = True
        self._thread.join(60)
        assert not self._thread.is_alive(), "the server stops"
        assert self.faults == []

    def _run_in_thread(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve_watched())

    async def _serve_watched(self) -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: self.faults.append(repr(context)),
        )
        await self.serve(sockets=[self.socket])

    def connect(self) -> Wire:
        return Wire(self.port)
