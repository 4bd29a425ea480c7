"""What handlers of the control plane may ask for; the entrypoint puts it into the app's state."""

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Annotated, Any, Protocol

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute

from adloom.core.actor import Actor
from adloom.core.clock import Clock
from adloom.core.ids import IdSource
from adloom.runtime.http.api.openapi import NEEDS_A_TOKEN
from adloom.runtime.postgres import Pool


class Authenticator(Protocol):
    """Authenticates a request by its headers."""

    async def actor_of(self, *, authorization: str | None, api_key: str | None) -> Actor:
        """Return who asks, or raise UnauthenticatedError."""
        ...


class GuardedRoute(APIRoute):
    """A route for authenticated actors; nothing of a request is read before authentication.

    `APIRouter(prefix="/admin/…", route_class=GuardedRoute)`; a handler takes a `CurrentActor`.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 - the framework's own
        options["openapi_extra"] = NEEDS_A_TOKEN
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_guarded(request: Request) -> Response:
            authenticator: Authenticator = request.app.state.authenticator
            request.state.actor = await authenticator.actor_of(
                authorization=request.headers.get("authorization"), api_key=request.headers.get("x-api-key")
            )
            return await handle(request)

        return handle_guarded


def _actor(request: Request) -> Actor:
    return request.state.actor


def _now(request: Request) -> datetime:
    clock: Clock = request.app.state.clock
    return clock.now()


def _ids(request: Request) -> IdSource:
    return request.app.state.ids


def _pool(request: Request) -> Pool:
    return request.app.state.pool


# One reading of the clock a request: FastAPI asks a dependency once.
CurrentActor = Annotated[Actor, Depends(_actor)]
Now = Annotated[datetime, Depends(_now)]
Ids = Annotated[IdSource, Depends(_ids)]
Database = Annotated[Pool, Depends(_pool)]
