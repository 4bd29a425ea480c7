"""What handlers of the control plane may ask for, and how their routes are described in OpenAPI."""

import functools
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, Protocol, get_args, get_origin

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.params import Cookie, Header, Path

from adloom.core.caller import Caller
from adloom.core.clock import Clock
from adloom.core.ids import IdSource
from adloom.runtime.http.api.origin import ClientOrigin, find_origin
from adloom.runtime.http.api.routes import TimedRoute
from adloom.runtime.http.problem import PROBLEM_CONTENT_TYPE
from adloom.runtime.http.rate_limit import CallerLimits
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey

Json = dict[str, Any]
Responses = dict[int | str, dict[str, Any]]

PROBLEM_SCHEMA: Final[Json] = {
    "type": "object",
    "description": "Problem details (RFC 9457).",
    "required": ["type", "title", "status", "detail", "message", "errorCode"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "message": {"type": "string", "description": "Repeats `detail`."},
        "errorCode": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
SECURITY_SCHEMES: Final[Json] = {
    "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
NEEDS_A_TOKEN: Final[Json] = {"security": [{name: []} for name in SECURITY_SCHEMES]}
_FRAMEWORKS_OWN: Final = ("HTTPValidationError", "ValidationError")


def describe_problem_answer(status: int) -> Json:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {PROBLEM_CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def describe_problems(*statuses: int) -> Responses:
    """Describe the errors of a router, for its `responses`."""
    return {status: describe_problem_answer(status) for status in statuses}


def build_document(app: FastAPI) -> Json:
    document: Json = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas: Json = document.setdefault("components", {}).setdefault("schemas", {})
    for name in _FRAMEWORKS_OWN:
        schemas.pop(name, None)
    schemas["Problem"] = PROBLEM_SCHEMA
    document["components"]["securitySchemes"] = SECURITY_SCHEMES
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
    return document


class Authenticator(Protocol):
    """Authenticates a request by its headers."""

    async def authenticate(
        self, *, authorization: str | None, api_key: str | None, origin: Callable[[], ClientOrigin]
    ) -> Caller:
        """Return who asks, or raise UnauthenticatedError."""
        ...


class GuardedRoute(TimedRoute):
    """A route for authenticated callers; nothing of a request is read before authentication.

    It refuses parameters of the query that it does not know, as bodies refuse unknown fields, and those that are there
    twice, unless they take several values.

    `make_router("/admin/…", "a tag", 400, 401)`; a handler takes a `CurrentCaller`.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 - the framework's own
        described: Json = options.pop("openapi_extra", None) or {}
        responses: Responses = options.pop("responses", None) or {}
        super().__init__(
            path,
            endpoint,
            openapi_extra={**NEEDS_A_TOKEN, **described},
            responses=describe_problems(401, 429, 503) | responses,
            **options,
        )

    def make_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().make_handler()
        # The fields of a query's model are not of the class `Query`.
        others = (Path, Header, Cookie)
        parameters = get_flat_params(self.dependant)
        of_query = [one for one in parameters if not isinstance(one.field_info, others)]
        names = {one.alias: _takes_several(one.field_info.annotation) for one in of_query}

        async def handle_guarded(request: Request) -> Response:
            authenticator: Authenticator = request.app.state.authenticator
            # Kept for answers that go on for long.
            authenticate = request.state.authenticate = functools.partial(
                authenticator.authenticate,
                authorization=request.headers.get("authorization"),
                api_key=request.headers.get("x-api-key"),
                origin=lambda: find_origin(request),
            )
            request.state.caller = await authenticate()
            limits: CallerLimits = request.app.state.caller_limits
            async with limits.hold(request.state.caller, now=_read_clock(request)):
                _check_parameters(request, names)
                return await handle(request)

        return handle_guarded


def _takes_several(annotation: object) -> bool:
    """Return whether a parameter is a list, or may be one."""
    return any(get_origin(one) in {list, tuple} for one in (annotation, *get_args(annotation)))


def _check_parameters(request: Request, names: Mapping[str, bool]) -> None:
    """Refuse parameters that are not known, and those that are repeated; `names` says which may be."""
    given = Counter(name for name, _ in request.query_params.multi_items())
    problems = [
        {"type": "repeated" if name in names else "extra_forbidden", "loc": ("query", name)}
        for name, count in given.items()
        if name not in names or (count > 1 and not names[name])
    ]
    if problems:
        raise RequestValidationError(problems)


def make_router(
    prefix: str, tag: str, *statuses: int, check: Callable[..., Coroutine[Any, Any, None]] | None = None
) -> APIRouter:
    """Make a router of guarded routes, with the errors that they may answer; `check` comes before each."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=GuardedRoute,
        dependencies=[] if check is None else [Depends(check)],
        responses=describe_problems(*statuses),
    )


async def _get_caller(request: Request) -> Caller:
    return request.state.caller


def depend_on(name: str) -> Any:  # noqa: ANN401 - FastAPI's own
    """Depend on what the application keeps by a name."""

    async def find(request: Request) -> Any:  # noqa: ANN401 - whatever it keeps
        return getattr(request.app.state, name)

    return Depends(find)


async def _get_now(request: Request) -> datetime:
    return _read_clock(request)


def _read_clock(request: Request) -> datetime:
    clock: Clock = request.app.state.clock
    return clock.now()


# One reading of the clock a request: FastAPI asks a dependency once.
CurrentCaller = Annotated[Caller, Depends(_get_caller)]
Now = Annotated[datetime, Depends(_get_now)]
Ids = Annotated[IdSource, depend_on("ids")]
Database = Annotated[Pool, depend_on("pool")]
CurrentValkey = Annotated[Valkey, depend_on("valkey")]
