"""Logging in over HTTP, the API keys of machines, and the tokens of the command line."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Query, Request, status
from pydantic import Field

from adloom.core.caller import Caller, Role
from adloom.core.errors import ConflictError, ForbiddenError, NotFoundError, make_field_error
from adloom.identity import store
from adloom.identity.acting_for import check_acts_for
from adloom.identity.issued_tokens import IssuedToken, find_issued, list_issued, revoke_issued
from adloom.identity.model import KEY_LIFETIME, KEY_SUBJECT, ApiKey
from adloom.identity.security_record import ACCESS_TOKEN, API_KEY, make_author, record_event
from adloom.identity.sessions import Credentials, UserSessions
from adloom.resource.audit.difference import describe_creation
from adloom.resource.audit.entry import Author
from adloom.resource.forms import build_answer
from adloom.runtime.auth.passwords import make_api_key, write_api_key_hint
from adloom.runtime.auth.secret_hash import hash_secret
from adloom.runtime.http.api.dependencies import (
    CurrentCaller,
    Database,
    Ids,
    Now,
    depend_on,
    describe_problems,
    make_router,
)
from adloom.runtime.http.api.origin import ClientOrigin, find_address, find_origin
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.routes import TimedRoute
from adloom.runtime.http.api.shapes import Answer, Body, Moment, Name, Text, Text255
from adloom.runtime.http.client_address import find_rate_limit_key
from adloom.runtime.http.rate_limit import RateLimiter
from adloom.runtime.postgres import Connection


class LogInBody(Body):
    """An e-mail address and a password."""

    email: Text255
    password: Annotated[Text, Field(max_length=1024, repr=False)]
    new_password: Annotated[
        Text | None,
        Field(max_length=1024, repr=False, description="Your own, where the password is a first one."),
    ] = None
    code: Annotated[
        Text255 | None,
        Field(repr=False, description="Of the second factor: the app's, or a recovery code."),
    ] = None


class RefreshBody(Body):
    """The refresh token of the last answer."""

    refresh_token: Annotated[Text255, Field(repr=False)]


class TokenAnswer(Answer):
    """Tokens, and after how many seconds the first of them expires."""

    access_token: Annotated[str, Field(repr=False)]
    refresh_token: Annotated[str, Field(repr=False)]
    expires_in_seconds: Annotated[int, Field(alias="expiresIn")]


class ApiKeyBody(Body):
    """A key for a machine that acts in a role, for an account where the role has one."""

    name: Name
    role: Role
    account_id: UUID | None = None
    expires_at: Annotated[
        Moment | None, Field(description="Null is never; where it is left out, in a year.")
    ] = None


ApiKeyAnswer: Final = build_answer(
    "ApiKeyAnswer", "A key as it is listed: known by its first characters.", ApiKey
)
NewApiKeyAnswer: Final = build_answer(
    "NewApiKeyAnswer",
    "A key when it is made: the only time that it is shown.",
    ApiKey,
    key=(str, Field(repr=False)),
)


async def limit_attempts(request: Request, now: Now) -> None:
    """Raise where a client has made too many attempts to log in."""
    limiter: RateLimiter = request.app.state.rate_limiter
    limiter.check(find_rate_limit_key(find_address(request)), now=now)


def require_admin_of(things: str) -> Callable[..., Coroutine[Any, Any, None]]:
    """Make a check that lets only admins in."""

    async def check(caller: CurrentCaller) -> None:
        if caller.role is not Role.ADMIN:
            raise ForbiddenError(f"Only an admin may see and change {things}.")

    return check


async def _find_origin(request: Request) -> ClientOrigin:
    return find_origin(request)


async def _get_author(request: Request, caller: CurrentCaller) -> Author:
    return make_author(caller, find_origin(request))


SessionsOfTheApp = Annotated[UserSessions, depend_on("sessions")]
RequestOrigin = Annotated[ClientOrigin, Depends(_find_origin)]
SecurityAuthor = Annotated[Author, Depends(_get_author)]

auth_router = APIRouter(
    prefix="/auth",
    tags=["log in"],
    route_class=TimedRoute,
    dependencies=[Depends(limit_attempts)],
    responses=describe_problems(400, 401, 403, 413, 429, 503),
)
api_keys_router = make_router(
    "/admin/api-keys", "API keys", 400, 401, 403, 404, 409, 413, 503, check=require_admin_of("API keys")
)


@auth_router.post("/login")
async def log_in(body: LogInBody, sessions: SessionsOfTheApp, origin: RequestOrigin, now: Now) -> TokenAnswer:
    """Log in; a first password needs a `newPassword` beside it, and a second factor a `code`."""
    shown = Credentials(**body.to_fields())
    return TokenAnswer.model_validate(await sessions.log_in(shown, now=now, origin=origin))


@auth_router.post("/refresh")
async def refresh(
    body: RefreshBody, sessions: SessionsOfTheApp, origin: RequestOrigin, now: Now
) -> TokenAnswer:
    """Exchange a refresh token for new tokens; a used one is refused and ends its log-in."""
    return TokenAnswer.model_validate(await sessions.refresh(body.refresh_token, now=now, origin=origin))


@auth_router.post("/logout", status_code=status.HTTP_204_NO_CONTENT)
async def log_out(body: RefreshBody, sessions: SessionsOfTheApp, origin: RequestOrigin, now: Now) -> None:
    """End the log-in that a refresh token belongs to, its access tokens too."""
    await sessions.log_out(body.refresh_token, now=now, origin=origin)


@api_keys_router.post("", status_code=status.HTTP_201_CREATED, response_model=NewApiKeyAnswer)
async def create_api_key(  # noqa: PLR0913, PLR0917 - what the framework hands in
    body: ApiKeyBody, caller: CurrentCaller, author: SecurityAuthor, pool: Database, ids: Ids, now: Now
) -> Answer:
    """Make a key; it is shown in this answer and never again. It ends with the person who makes it."""
    is_given = "expires_at" in body.model_fields_set
    expires_at = body.expires_at if is_given else now + KEY_LIFETIME
    if expires_at is not None and expires_at <= now:
        raise make_field_error("expiresAt", "must be in the future", "A key cannot end before it begins.")
    secret = make_api_key()
    key = ApiKey(
        id=ids.make(),
        name=body.name,
        key_hint=write_api_key_hint(secret),
        role=body.role,
        account_id=body.account_id,
        created_at=now,
        owner_id=None,
        expires_at=expires_at,
        last_used_at=None,
        revoked_at=None,
    )
    async with pool.acquire() as connection, connection.transaction():
        await check_acts_for(connection, body.role, body.account_id)
        owner_id = await _find_owner(connection, caller)
        if owner_id is not None:
            # Who ends the person's access revokes the keys that are there.
            await store.lock_open_admin(connection, owner_id)
        key = msgspec.structs.replace(key, owner_id=owner_id)
        await store.insert_api_key(connection, key, hash_secret(secret))
        changes = describe_creation(key)
        await record_event(connection, author, "create", API_KEY, key.id, at=now, changes=changes)
    return NewApiKeyAnswer.model_validate({**msgspec.structs.asdict(key), "key": secret})


@api_keys_router.get("", response_model=Page[ApiKeyAnswer])
async def list_api_keys(query: Annotated[ListQuery, Query()], pool: Database) -> Page[Any]:
    """List the keys, revoked ones included."""
    async with pool.acquire() as connection:
        return build_page(ApiKeyAnswer, await store.list_api_keys(connection, query.page_request), query)


@api_keys_router.delete("/{key_id}", status_code=status.HTTP_204_NO_CONTENT)
async def revoke_api_key(key_id: UUID, author: SecurityAuthor, pool: Database, now: Now) -> None:
    """Revoke a key, at once and for good."""
    async with pool.acquire() as connection, connection.transaction():
        if not await store.revoke_api_key(connection, key_id, now):
            if await store.has_api_key(connection, key_id):
                raise ConflictError("The API key is revoked already.", code="API_KEY_ALREADY_REVOKED")
            raise NotFoundError("There is no such API key.", code="API_KEY_NOT_FOUND")
        await record_event(connection, author, "revoke", API_KEY, key_id, at=now)


async def _find_owner(connection: Connection, caller: Caller) -> UUID | None:
    """Return the person behind a caller: a key that makes keys makes them for its owner."""
    if caller.subject.startswith(KEY_SUBJECT):
        return await store.find_key_owner(connection, UUID(caller.subject.removeprefix(KEY_SUBJECT)))
    return caller.person_id


IssuedTokenAnswer: Final = build_answer(
    "IssuedTokenAnswer", "A token of the command line, from when it was made or first used on.", IssuedToken
)


class IssuedTokenQuery(ListQuery):
    """How the list is sorted and paged."""

    SORTABLE: ClassVar[frozenset[str]] = frozenset({"issued_at", "expires_at"})

    sort: Text255 = "-issuedAt"


access_tokens_router = make_router(
    "/admin/access-tokens",
    "access tokens",
    400,
    401,
    403,
    404,
    409,
    503,
    check=require_admin_of("access tokens"),
)


@access_tokens_router.get("", response_model=Page[IssuedTokenAnswer])
async def list_access_tokens(query: Annotated[IssuedTokenQuery, Query()], pool: Database) -> Page[Any]:
    """List the tokens that `adloom token` printed; expired ones stay for 30 days."""
    async with pool.acquire() as connection:
        return build_page(IssuedTokenAnswer, await list_issued(connection, query.page_request), query)


@access_tokens_router.delete("/{token_id}", status_code=status.HTTP_204_NO_CONTENT)
async def revoke_access_token(token_id: UUID, author: SecurityAuthor, pool: Database, now: Now) -> None:
    """Revoke a token, at once and for good."""
    async with pool.acquire() as connection, connection.transaction():
        if not await revoke_issued(connection, token_id, now):
            if await find_issued(connection, token_id) is not None:
                raise ConflictError(
                    "The token is revoked or expired already.", code="ACCESS_TOKEN_ALREADY_ENDED"
                )
            raise NotFoundError("There is no such token.", code="ACCESS_TOKEN_NOT_FOUND")
        await record_event(connection, author, "revoke", ACCESS_TOKEN, token_id, at=now)
