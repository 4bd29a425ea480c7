"""The routes of the control plane: read late, and bounded in how long they wait for a database that does not answer.

The framework reads a route when it is first used, not while the process starts. It looks at the handler's parameters and
answer, which takes a millisecond and more; there are over two hundred, and few of them are asked for in the minute after
a start.

The database is asked only about requests that take long, over a connection of its own. A request that is slow because
it has much to do is left alone.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.routing import compile_path

from adloom.core.errors import UnavailableError

# Requests read routes on the event loop, the description in a thread. Reentrant: reading asks for what is not read yet.
_READING: Final = threading.RLock()


class LateRoute(APIRoute):
    """A route that knows its address from the beginning, and the rest with the first request or description."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        methods: Collection[str] | None = None,
        name: str | None = None,
        **options: Any,  # noqa: ANN401 - the framework's own
    ) -> None:
        self.path, self.endpoint = path, endpoint
        self.name = name or endpoint.__name__
        self.methods = {method.upper() for method in methods or ("GET",)}
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self._options = options

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the framework knows of a route
        """Let the framework read the route; asked for only what it has not."""
        with _READING:
            options = self.__dict__.pop("_options", None)
            if options is not None:
                super().__init__(self.path, self.endpoint, methods=self.methods, name=self.name, **options)
        if options is None and name not in self.__dict__:
            raise AttributeError(name)
        return getattr(self, name)


WAIT_SECONDS: Final = 1.0
ASK_AGAIN_SECONDS: Final = 1.0
# One may be unanswered because this process, or the machine, had no time for it.
UNANSWERED_MAX: Final = 1
READ_METHODS: Final = frozenset({"GET", "HEAD"})
AWAY: Final = "PostgreSQL does not answer."
NOT_KNOWN: Final = "It is not known whether the change was made: look before you try again."


def describe_outage(detail: str, method: str) -> str:
    """Say what is known: a read may be repeated, a write may have been done."""
    return f"{detail} {'Try again in a moment.' if method in READ_METHODS else NOT_KNOWN}"


class DatabaseTimeout:
    """Ends the wait of requests for a database that does not answer."""

    def __init__(self, is_answering: Callable[[], Awaitable[bool]]) -> None:
        self._is_answering = is_answering
        self._asking: asyncio.Future[bool] | None = None
        # The driver tidies up after a cancelled statement, which takes seconds; no request waits for that.
        self._abandoned: set[asyncio.Future[Response]] = set()

    async def wait_for(self, answer: Coroutine[Any, Any, Response], method: str) -> Response:
        """Return an answer, or raise UnavailableError while the database does not answer."""
        working = asyncio.ensure_future(answer)
        try:
            await asyncio.wait({working}, timeout=WAIT_SECONDS)
            unanswered = 0
            while not working.done() and unanswered <= UNANSWERED_MAX:
                if await self._ask():
                    unanswered = 0
                    await asyncio.wait({working}, timeout=ASK_AGAIN_SECONDS)
                else:
                    unanswered += 1
        finally:
            if not working.done():
                self._abandon(working)
        if working.done():
            return working.result()
        raise UnavailableError(describe_outage(AWAY, method))

    async def _ask(self) -> bool:
        """Ask once for all requests that wait."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._is_answering())
        return await asyncio.shield(self._asking)

    def _abandon(self, working: asyncio.Future[Response]) -> None:
        self._abandoned.add(working)
        working.add_done_callback(self._forget)
        working.cancel()

    def _forget(self, working: asyncio.Future[Response]) -> None:
        self._abandoned.discard(working)
        if not working.cancelled():
            working.exception()  # Looked at: it has been answered already.


class TimedRoute(LateRoute):
    """A route that answers 503 while the database does not answer, instead of waiting for it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = self.make_handler()

        async def handle_in_time(request: Request) -> Response:
            timeout: DatabaseTimeout = request.app.state.database_timeout
            return await timeout.wait_for(handle(request), request.method)

        return handle_in_time

    def make_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return super().get_route_handler()
