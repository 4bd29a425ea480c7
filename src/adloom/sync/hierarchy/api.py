"""The hierarchy of an ad account over HTTP; credentials go in and never come out."""

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import status

from adloom.core.currency import Currency
from adloom.core.errors import ConflictError, make_field_error
from adloom.resource.api import (
    Access,
    CurrentCatalog,
    build_router,
    create_in,
    find_named_owner,
    set_body_type,
)
from adloom.runtime.encryption import SecretCipher
from adloom.runtime.http.api.dependencies import Ids, Now, depend_on
from adloom.runtime.http.api.shapes import Answer, Body, Patch
from adloom.sync.api import SellerWrites, require_seller_read, require_seller_write
from adloom.sync.hierarchy.model import AdAccount
from adloom.sync.hierarchy.resource import (
    ad_accounts,
    ads,
    adsets,
    sellpages,
    set_credentials,
    synced_campaigns,
)
from adloom.sync.words import Platform

SELLERS: Final = Access(require_seller_read, require_seller_write)


CurrentCipher = Annotated[SecretCipher | None, depend_on("sealer")]
CurrencyOfPrices = Annotated[Currency, depend_on("currency")]

accounts_router = build_router(ad_accounts, access=SELLERS, but=("create", "change", "delete"))
sellpages_router = build_router(sellpages, access=SELLERS)
campaigns_router = build_router(synced_campaigns, access=SELLERS)
adsets_router = build_router(adsets, access=SELLERS)
ads_router = build_router(ads, access=SELLERS)


@accounts_router.post("", status_code=status.HTTP_201_CREATED, response_model=ad_accounts.answer)
@set_body_type(ad_accounts.body)
async def create_ad_account(  # noqa: PLR0913 - what a write needs, the cipher and the currency
    body: Body,
    writer: SellerWrites,
    catalog: CurrentCatalog,
    cipher: CurrentCipher,
    prices: CurrencyOfPrices,
    *,
    ids: Ids,
    now: Now,
) -> Answer:
    """Connect an ad account."""
    if prices.code and "currency" not in body.model_fields_set and _get(body, "platform") is Platform.ADLOOM:
        body = body.model_copy(update={"currency": prices.code})
    async with catalog.write() as write:
        account = await create_in(write, ad_accounts, writer, body, ids, now)
        _check_currency(account, prices)
        credentials = _find_credentials(body)
        if credentials is not None:
            sealed = _encrypt(cipher, account, credentials)
            account = await set_credentials(write, account, sealed, now=now)
    return ad_accounts.answer.model_validate(account)


@accounts_router.patch("/{account_id}", response_model=ad_accounts.answer)
@set_body_type(ad_accounts.patch)
async def change_ad_account(  # noqa: PLR0913, PLR0917 - what a write needs, the cipher and the currency
    account_id: UUID,
    body: Patch,
    writer: SellerWrites,
    catalog: CurrentCatalog,
    cipher: CurrentCipher,
    prices: CurrencyOfPrices,
    *,
    now: Now,
) -> Answer:
    """Change an ad account, field by field; other credentials end what was wrong with those before."""
    scope = writer.find_scope(find_named_owner(ad_accounts, body))
    async with catalog.write() as write:
        after = await ad_accounts.change(
            write, scope, account_id, lambda before: ad_accounts.apply(body, before, now)
        )
        if not body.model_fields_set.isdisjoint({"platform", "currency"}):
            _check_currency(after, prices)
        if "credentials" in body.model_fields_set:
            credentials = _find_credentials(body)
            sealed = None if credentials is None else _encrypt(cipher, after, credentials)
            after = await set_credentials(write, after, sealed, now=now)
    return ad_accounts.answer.model_validate(after)


@accounts_router.delete("/{account_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_ad_account(
    account_id: UUID, writer: SellerWrites, catalog: CurrentCatalog, now: Now
) -> None:
    """Delete an ad account that has no campaigns any more, and its credentials."""
    scope = writer.find_scope(None)
    async with catalog.write() as write:
        account = await ad_accounts.lock(write, scope, account_id)
        await ad_accounts.remove(write, scope, account_id, now=now)
        if account.has_credentials:
            await set_credentials(write, account, None, now=now)


def _check_currency(account: AdAccount, prices: Currency) -> None:
    """Refuse our own delivery in another currency than that of our prices."""
    if account.platform is Platform.ADLOOM and prices.code and account.currency != prices.code:
        raise make_field_error("currency", f"must be {prices.code}, in which Adloom charges")


def _find_credentials(body: Body) -> str | None:
    return _get(body, "credentials") if "credentials" in body.model_fields_set else None


def _get(body: Body, field: str) -> Any:  # noqa: ANN401 - bodies are made from the declaration
    return getattr(body, field)


def _encrypt(cipher: SecretCipher | None, account: AdAccount, credentials: str) -> bytes:
    if cipher is None:
        raise ConflictError(
            "This installation keeps no credentials: its operator must set ADLOOM_SECRET first.",
            code="CREDENTIALS_NOT_TAKEN",
        )
    return cipher.encrypt(credentials, belongs_to=str(account.id))


ROUTERS = (accounts_router, sellpages_router, campaigns_router, adsets_router, ads_router)
