"""Ad accounts over HTTP; credentials go in and never come out."""

from datetime import datetime
from typing import Annotated, ClassVar, Final
from uuid import UUID

import msgspec
from fastapi import Depends, Query, Request, status
from pydantic import Field

from adloom.resource.api import CurrentCatalog, catalog_router
from adloom.resource.shapes import TimeZone
from adloom.runtime.encryption import SecretCipher
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.pages import Page
from adloom.runtime.http.api.shapes import Answer, Body, Flag, Name, Text, Text255
from adloom.runtime.postgres import Connection
from adloom.sync.api import (
    PREFIX,
    Currency,
    SellerActs,
    SellerBody,
    SellerListQuery,
    SellerPatch,
    SellerReads,
    SellerWrites,
)
from adloom.sync.hierarchy.account import store
from adloom.sync.hierarchy.model import AdAccount, AdAccountId, CredentialsNotTakenError
from adloom.sync.words import Platform

CREDENTIALS_LENGTH_MAX: Final = 4_096

Credentials = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=CREDENTIALS_LENGTH_MAX,
        description="What the platform lets us in with; of Meta an access token. Never shown again.",
        json_schema_extra={"writeOnly": True},
    ),
]


class AccountFields(Body):
    """What an ad account can be told."""

    name: Name
    platform: Platform = Platform.MOCK
    external_id: Text255 | None = None
    is_active: Flag = True
    currency: Currency = "USD"
    timezone: TimeZone = "UTC"


class AdAccountBody(AccountFields, SellerBody):
    """A new ad account."""

    credentials: Credentials | None = None


class AccountPatch(SellerPatch, AccountFields):
    """Changes of an ad account; other credentials end what was wrong with those before."""

    SIDE_STREAM: ClassVar = SellerPatch.SIDE_STREAM | {"credentials"}

    credentials: Credentials | None


class AdAccountAnswer(Answer):
    """An ad account; `credentialsExpiredAt` says since when somebody must connect it again, and why."""

    id: UUID
    advertiser_id: Annotated[UUID, Field(alias="sellerId")]
    name: str
    platform: Platform
    external_id: str | None
    is_active: bool
    currency: str
    timezone: str
    has_credentials: bool
    credentials_expired_at: datetime | None
    credentials_problem: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class AdAccountQuery(SellerListQuery):
    """What a list of ad accounts may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    platform: Platform | None = None
    is_active: bool | None = None
    search: Text255 | None = None


def _sealer(request: Request) -> SecretCipher | None:
    return request.app.state.sealer


SealerOfTheApp = Annotated[SecretCipher | None, Depends(_sealer)]

router = catalog_router(f"{PREFIX}/accounts", tag="ads manager")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_account(  # noqa: PLR0913 - what a write needs, and the seal
    body: AdAccountBody,
    asker: SellerWrites,
    catalog: CurrentCatalog,
    sealer: SealerOfTheApp,
    *,
    ids: Ids,
    now: Now,
) -> AdAccountAnswer:
    """Connect an ad account."""
    account = AdAccount(
        **{name: getattr(body, name) for name in AccountFields.model_fields},
        id=AdAccountId(ids.new()),
        advertiser_id=asker.seller_id(body.seller_id),
        credentials_expired_at=None,
        credentials_problem=None,
        created_at=now,
        updated_at=now,
        deleted_at=None,
    )
    async with catalog.write() as write:
        await store.accounts.insert(write, account)
        if body.credentials is not None:
            sealed = _sealed(sealer, account, body.credentials)
            account = await store.set_credentials(write, account, sealed, now=now)
    return _answer(account, has_credentials=body.credentials is not None)


@router.get("")
async def list_accounts(
    query: Annotated[AdAccountQuery, Query()], scope: SellerReads, catalog: CurrentCatalog
) -> Page[AdAccountAnswer]:
    """List ad accounts."""
    filters = store.matching(platform=query.platform, is_active=query.is_active, search=query.search)
    async with catalog.read() as connection:
        listed = await store.accounts.page(connection, scope, filters, query.page_request)
        connected = await store.connected(connection, [account.id for account in listed.items])
    return Page[AdAccountAnswer](
        items=[_answer(account, has_credentials=account.id in connected) for account in listed.items],
        total_count=listed.total_count,
        page=query.page,
        page_size=query.page_size,
        total_pages=-(-listed.total_count // query.page_size),
    )


@router.get("/{account_id}")
async def read_account(account_id: UUID, scope: SellerReads, catalog: CurrentCatalog) -> AdAccountAnswer:
    """Read an ad account."""
    async with catalog.read() as connection:
        return await _shown(connection, await store.accounts.find(connection, scope, account_id))


@router.patch("/{account_id}")
async def change_account(  # noqa: PLR0913 - what a write needs, and the seal
    account_id: UUID,
    body: AccountPatch,
    asker: SellerWrites,
    catalog: CurrentCatalog,
    sealer: SealerOfTheApp,
    *,
    now: Now,
) -> AdAccountAnswer:
    """Change an ad account, field by field."""
    scope = asker.scope_of(body.named_seller)
    async with catalog.write() as write:
        before = await store.accounts.find_locked(write, scope, account_id)
        after = await store.update(write, before, body.applied_to(before, updated_at=now))
        if "credentials" in body.model_fields_set:
            sealed = None if body.credentials is None else _sealed(sealer, after, body.credentials)
            after = await store.set_credentials(write, after, sealed, now=now)
        return await _shown(write.connection, after)


@router.delete("/{account_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_account(account_id: UUID, scope: SellerActs, catalog: CurrentCatalog, now: Now) -> None:
    """Delete an ad account that has no campaigns any more, and its credentials."""
    async with catalog.write() as write:
        account = await store.accounts.find_locked(write, scope, account_id)
        await store.accounts.remove(write, account, now=now)
        if await store.connected(write.connection, [account.id]):
            await store.set_credentials(write, account, None, now=now)


def _sealed(sealer: SecretCipher | None, account: AdAccount, credentials: str) -> bytes:
    if sealer is None:
        raise CredentialsNotTakenError(
            "This installation keeps no credentials: its operator must set ADLOOM_SECRET first."
        )
    return sealer.encrypt(credentials, belongs_to=str(account.id))


async def _shown(connection: Connection, account: AdAccount) -> AdAccountAnswer:
    connected = await store.connected(connection, [account.id])
    return _answer(account, has_credentials=account.id in connected)


def _answer(account: AdAccount, *, has_credentials: bool) -> AdAccountAnswer:
    return AdAccountAnswer(**msgspec.structs.asdict(account), has_credentials=has_credentials)
