"""Logging in over HTTP, and the API keys of machines."""

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Query, Request, status
from pydantic import Field

from adloom.core.actor import Role
from adloom.core.errors import ForbiddenError, NotFoundError
from adloom.identity import store
from adloom.identity.model import ApiKey, check_account
from adloom.identity.sessions import UserSessions
from adloom.resource.forms import build_answer
from adloom.runtime.auth import api_key_hint, new_api_key
from adloom.runtime.http.api.dependencies import (
    CurrentActor,
    Database,
    Ids,
    Now,
    guarded_router,
    problems,
)
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Name, Text, Text255
from adloom.runtime.http.client_address import find_client_address, rate_limit_key
from adloom.runtime.http.rate_limit import RateLimiter
from adloom.runtime.secret_hash import hash_secret


class LogInBody(Body):
    """An e-mail address and a password."""

    email: Text255
    password: Annotated[Text, Field(max_length=1024, repr=False)]


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


ApiKeyAnswer: Final = build_answer(
    "ApiKeyAnswer", "A key as it is listed: known by its first characters.", ApiKey
)
NewApiKeyAnswer: Final = build_answer(
    "NewApiKeyAnswer",
    "A key when it is made: the only time that it is shown.",
    ApiKey,
    key=(str, Field(repr=False)),
)


def limit_attempts(request: Request, now: Now) -> None:
    """Raise where a client has made too many attempts to log in."""
    limiter: RateLimiter = request.app.state.rate_limiter
    peer = request.client.host if request.client else None
    forwarded_for = request.headers.getlist("x-forwarded-for")
    address = find_client_address(peer, forwarded_for, request.app.state.trusted_proxies)
    limiter.check(rate_limit_key(address), now=now)


def _sessions(request: Request) -> UserSessions:
    return request.app.state.sessions


def _admin_only(actor: CurrentActor) -> None:
    if actor.role is not Role.ADMIN:
        raise ForbiddenError("Only an admin may see and change API keys.")


SessionsOfTheApp = Annotated[UserSessions, Depends(_sessions)]

auth_router = APIRouter(
    prefix="/auth",
    tags=["log in"],
    dependencies=[Depends(limit_attempts)],
    responses=problems(400, 401, 413, 429, 503),
)
api_keys_router = guarded_router(
    "/admin/api-keys", "API keys", 400, 401, 403, 404, 413, 503, check=_admin_only
)


@auth_router.post("/login")
async def log_in(body: LogInBody, sessions: SessionsOfTheApp, now: Now) -> TokenAnswer:
    """Log in with an e-mail address and a password."""
    return TokenAnswer.model_validate(await sessions.log_in(body.email, body.password, now=now))


@auth_router.post("/refresh")
async def refresh(body: RefreshBody, sessions: SessionsOfTheApp, now: Now) -> TokenAnswer:
    """Exchange a refresh token for new tokens; a used one is refused and ends its log-in."""
    return TokenAnswer.model_validate(await sessions.refresh(body.refresh_token, now=now))


@auth_router.post("/logout", status_code=status.HTTP_204_NO_CONTENT)
async def log_out(body: RefreshBody, sessions: SessionsOfTheApp) -> None:
    """End the log-in that a refresh token belongs to."""
    await sessions.log_out(body.refresh_token)


@api_keys_router.post("", status_code=status.HTTP_201_CREATED, response_model=NewApiKeyAnswer)
async def create_api_key(body: ApiKeyBody, pool: Database, ids: Ids, now: Now) -> Answer:
    """Make a key; it is shown in this answer and never again."""
    check_account(body.role, body.account_id)
    secret = new_api_key()
    key = ApiKey(
        id=ids.new(),
        name=body.name,
        key_hint=api_key_hint(secret),
        role=body.role,
        account_id=body.account_id,
        created_at=now,
        revoked_at=None,
    )
    async with pool.acquire() as connection:
        await store.insert_api_key(connection, key, hash_secret(secret))
    return NewApiKeyAnswer.model_validate({**msgspec.structs.asdict(key), "key": secret})


@api_keys_router.get("", response_model=Page[ApiKeyAnswer])
async def list_api_keys(query: Annotated[ListQuery, Query()], pool: Database) -> Page[Any]:
    """List the keys, revoked ones included."""
    async with pool.acquire() as connection:
        return page_of(ApiKeyAnswer, await store.list_api_keys(connection, query.page_request), query)


@api_keys_router.delete("/{key_id}", status_code=status.HTTP_204_NO_CONTENT)
async def revoke_api_key(key_id: UUID, pool: Database, now: Now) -> None:
    """Revoke a key, at once and for good."""
    async with pool.acquire() as connection:
        if not await store.revoke_api_key(connection, key_id, now):
            raise NotFoundError(
                "There is no such API key, or it is revoked already.", code="API_KEY_NOT_FOUND"
            )
