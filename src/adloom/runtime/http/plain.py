"""A very small ASGI app for processes that answer little more than their health."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

import msgspec
from starlette.types import Receive, Scope, Send

from adloom.core.errors import AdloomError, MethodNotAllowedError, NotFoundError
from adloom.runtime.http.problem import PROBLEM_CONTENT_TYPE, encode_problem

READ_METHODS = frozenset({"GET", "HEAD"})
ALLOWED = ", ".join(sorted(READ_METHODS))


class PlainAnswer(msgspec.Struct, frozen=True):
    """A status, a type and a body."""

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = (("cache-control", "no-store"),)


PlainRoute = Callable[[], Awaitable[PlainAnswer]]


class PlainApp:
    """Answers GET on exact paths; everything else is a problem."""

    def __init__(self, routes: Mapping[str, PlainRoute]) -> None:
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        assert scope["type"] == "http", "lifespan and websockets are switched off"
        answer = await self._answer(scope["method"], scope["path"])
        headers = (
            ("content-type", answer.content_type),
            ("content-length", str(len(answer.body))),
            *answer.headers,
        )
        encoded = [(name.encode(), value.encode()) for name, value in headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        await send({"type": "http.response.body", "body": answer.body if scope["method"] != "HEAD" else b""})

    async def _answer(self, method: str, path: str) -> PlainAnswer:
        route = self._routes.get(path)
        if route is None:
            return _answer_problem(NotFoundError("There is nothing at this address."))
        if method not in READ_METHODS:
            return _answer_problem(MethodNotAllowedError("This address takes GET."), ("allow", ALLOWED))
        return await route()


def _answer_problem(error: AdloomError, *headers: tuple[str, str]) -> PlainAnswer:
    return PlainAnswer(error.status, encode_problem(error), PROBLEM_CONTENT_TYPE, headers)
