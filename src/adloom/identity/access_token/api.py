"""Issued tokens over HTTP: what is out, and taking it back."""

from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

from fastapi import Query, status

from adloom.core.errors import ConflictError, NotFoundError
from adloom.identity.access_token import store
from adloom.identity.access_token.store import IssuedToken
from adloom.identity.api import SecurityAuthor, require_admin_of
from adloom.identity.security_record import ACCESS_TOKEN, record_event
from adloom.resource.forms import build_answer
from adloom.runtime.http.api.dependencies import Database, Now, make_router
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Text255

IssuedTokenAnswer: Final = build_answer(
    "IssuedTokenAnswer", "A token of the command line, from when it was made or first used on.", IssuedToken
)


class IssuedTokenQuery(ListQuery):
    """How the list is sorted and paged."""

    SORTABLE: ClassVar[frozenset[str]] = frozenset({"issued_at", "expires_at"})

    sort: Text255 = "-issuedAt"


router = make_router(
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


@router.get("", response_model=Page[IssuedTokenAnswer])
async def list_access_tokens(query: Annotated[IssuedTokenQuery, Query()], pool: Database) -> Page[Any]:
    """List the tokens that `adloom token` printed; expired ones stay for 30 days."""
    async with pool.acquire() as connection:
        return build_page(IssuedTokenAnswer, await store.list_issued(connection, query.page_request), query)


@router.delete("/{token_id}", status_code=status.HTTP_204_NO_CONTENT)
async def revoke_access_token(token_id: UUID, author: SecurityAuthor, pool: Database, now: Now) -> None:
    """Revoke a token, at once and for good."""
    async with pool.acquire() as connection, connection.transaction():
        if not await store.revoke_issued(connection, token_id, now):
            if await store.find_issued(connection, token_id) is not None:
                raise ConflictError(
                    "The token is revoked or expired already.", code="ACCESS_TOKEN_ALREADY_ENDED"
                )
            raise NotFoundError("There is no such token.", code="ACCESS_TOKEN_NOT_FOUND")
        await record_event(connection, author, "revoke", ACCESS_TOKEN, token_id, at=now)
