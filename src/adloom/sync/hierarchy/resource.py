"""Ad accounts, sell pages, campaigns, ad sets and ads, declared.

A deleted row stays in its table, out of sight, because statistics are still about it. A row that others hang on
cannot be deleted; whatever is to hang on a row locks it first.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from pydantic import AfterValidator, Field

from adloom.core.caller import Role
from adloom.core.errors import ConflictError, FieldProblem, make_field_error
from adloom.resource.access import Owner, Scope
from adloom.resource.audit.difference import HIDDEN
from adloom.resource.audit.entry import NewAuditEntry
from adloom.resource.changes import CatalogWrite
from adloom.resource.etag import move_forward
from adloom.resource.resource import BeforeDelete, Resource
from adloom.runtime.http.api.shapes import Text
from adloom.sync.api import FIELD, PREFIX, WHO, SellerListQuery
from adloom.sync.hierarchy.model import Ad, AdAccount, Adset, Sellpage, SyncedCampaign
from adloom.sync.words import ACCESS_TOKEN, META_ACCOUNT, Platform

SELLER: Final = Owner(role=Role.ADVERTISER, alias=FIELD, description=WHO, is_in_patch=True)
# What all nouns of the hierarchy have in common.
OF_A_SELLER: Final[Any] = {
    "tag": "ads manager",
    "owner": SELLER,
    "hides_deleted": True,
    "query_base": SellerListQuery,
}
NAMED_MAX: Final = 3
STILL_IN_USE: Final = "STILL_IN_USE"
CREDENTIALS_LENGTH_MAX: Final = 4_096


def _check_token(text: str) -> str:
    """Return a token without the blanks around it that a paste may bring."""
    text = text.strip()
    if not ACCESS_TOKEN.fullmatch(text):
        raise ValueError("must be a token: letters a to z, digits and signs, without blanks")
    return text


Credentials = Annotated[
    Text,
    AfterValidator(_check_token),
    Field(
        max_length=CREDENTIALS_LENGTH_MAX,
        description="What the platform lets us in with; of Meta an access token. Never shown again.",
        json_schema_extra={"writeOnly": True, "pattern": rf"^\s*{ACCESS_TOKEN.pattern}\s*$"},
    ),
]
# Others than those before: whatever was wrong with them is over.
SET_CREDENTIALS: Final = """
    UPDATE sync.ad_accounts
       SET credentials = $2, credentials_expired_at = NULL, credentials_problem = NULL, updated_at = $3
     WHERE public_id = $1
"""
# Deleted ones too: their statistics are still there.
HAS_CAMPAIGNS: Final = """
    SELECT EXISTS (
        SELECT FROM sync.campaigns
         WHERE ad_account_id = (SELECT id FROM sync.ad_accounts WHERE public_id = $1)
    )
"""

# The platforms and currencies of the accounts of some parents; one row if they are the same.
TERMS: Final = {
    "ad_account_id": "SELECT DISTINCT platform, currency FROM sync.ad_accounts WHERE public_id = ANY ($1::uuid[])",
    "campaign_id": """
        SELECT DISTINCT account.platform, account.currency FROM sync.campaigns AS it
          JOIN sync.ad_accounts AS account ON account.id = it.ad_account_id
         WHERE it.public_id = ANY ($1::uuid[])
    """,
    "adset_id": """
        SELECT DISTINCT account.platform, account.currency FROM sync.adsets AS it
          JOIN sync.campaigns AS campaign ON campaign.id = it.campaign_id
          JOIN sync.ad_accounts AS account ON account.id = campaign.ad_account_id
         WHERE it.public_id = ANY ($1::uuid[])
    """,
}


def _keep_terms(words: str, parent: str) -> Callable[[CatalogWrite, Scope, Any, Any], Awaitable[None]]:
    """Refuse to move what has a parent to an account of another platform or currency."""

    async def check(write: CatalogWrite, _scope: Scope, before: Any, after: Any) -> None:  # noqa: ANN401 - any struct of the hierarchy
        if before is None or getattr(before, parent) == getattr(after, parent):
            return
        parents = [getattr(before, parent), getattr(after, parent)]
        if len(await write.connection.fetch(TERMS[parent], parents)) > 1:
            raise ConflictError(
                f"The {words} cannot move to an account of another platform or currency:"
                f" its statistics are in those that it has. Make another {words}.",
                code=STILL_IN_USE,
            )

    return check


def _refuse_while_used(words: str, table: str, by: str, column: str, children: str) -> BeforeDelete:
    """Refuse to delete a row of `table` while rows of the table `by` name it in a column."""
    statement = f"""
        SELECT name, count(*) OVER () AS total FROM {by}
         WHERE {column} = (SELECT id FROM {table} WHERE public_id = $1) AND deleted_at IS NULL
         ORDER BY name LIMIT {NAMED_MAX:d}
    """  # noqa: S608 - our own names

    async def check(write: CatalogWrite, thing: Any, _now: datetime) -> None:  # noqa: ANN401 - any struct of the hierarchy
        rows = await write.connection.fetch(statement, thing.id)
        if rows:
            names = ", ".join(f'"{row["name"]}"' for row in rows)
            more = rows[0]["total"] - len(rows)
            raise ConflictError(
                f'The {words} "{thing.name}" still has {children}: {names}'
                f"{f' and {more} more' if more else ''}. Delete them first.",
                code=STILL_IN_USE,
            )

    return check


def _make_taken_error(words: str, field: str) -> Callable[[object], ConflictError]:
    def make_error(_thing: object) -> ConflictError:
        return ConflictError(
            f"Another {words} has this external id: its statistics would be counted twice.",
            errors=[FieldProblem(field, f"is that of another {words}")],
            code="EXTERNAL_ID_EXISTS",
        )

    return make_error


async def _check_platform(
    write: CatalogWrite, _scope: Scope, before: AdAccount | None, after: AdAccount
) -> None:
    external_id = after.external_id
    if after.platform is Platform.META and external_id and not META_ACCOUNT.fullmatch(external_id):
        raise make_field_error(
            "externalId", "must be the number of an ad account of Meta, like act_1234 or 1234"
        )
    if before is None or (after.platform, after.currency) == (before.platform, before.currency):
        return
    if before.platform is after.platform is Platform.ADLOOM:
        return  # Its figures are in the currency of our prices, whatever the account was called.
    if await write.connection.fetchval(HAS_CAMPAIGNS, before.id):
        raise ConflictError(
            "The platform and the currency of an ad account stay as they are once it has campaigns:"
            " their statistics are in them. Make another account.",
            code=STILL_IN_USE,
        )


async def set_credentials(
    write: CatalogWrite, account: AdAccount, sealed: bytes | None, *, now: datetime
) -> AdAccount:
    """Write the encrypted credentials of an account that is locked, or that there are none."""
    after = move_forward(
        account,
        msgspec.structs.replace(
            account,
            has_credentials=sealed is not None,
            credentials_expired_at=None,
            credentials_problem=None,
            updated_at=now,
        ),
    )
    await write.connection.execute(SET_CREDENTIALS, after.id, sealed, after.updated_at)
    changes = {"credentials": {"from": HIDDEN, "to": None if sealed is None else HIDDEN}}
    subject = await ad_accounts.table.load_subject(write.connection, after)
    write.entries.append(NewAuditEntry(subject, "update", changes))
    return after


ad_accounts = Resource(
    struct=AdAccount,
    name="account",
    noun="ad_account",
    function_name="ad_account",
    article="an",
    path=f"{PREFIX}/accounts",
    table_name="sync.ad_accounts",
    **OF_A_SELLER,
    docs={
        "answer": "An ad account; `credentialsExpiredAt` says since when it must be connected again, and why.",
        "list": "List ad accounts.",
    },
    set_by_server=frozenset({"has_credentials", "credentials_expired_at", "credentials_problem"}),
    form={"credentials": (Credentials | None, None)},
    filters=("platform", "is_active"),
    search=("name", "external_id"),
    sort=("name", "platform", "is_active"),
    check=_check_platform,
    before_delete=_refuse_while_used(
        "ad account", "sync.ad_accounts", "sync.campaigns", "ad_account_id", "campaigns"
    ),
    taken=_make_taken_error("ad account", "externalId"),
)
sellpages = Resource(
    struct=Sellpage,
    name="sellpage",
    path=f"{PREFIX}/sellpages",
    table_name="sync.sellpages",
    **OF_A_SELLER,
    docs={"delete": "Delete a sell page to which no campaign leads any more."},
    search=("name", "url"),
    sort=("name",),
    before_delete=_refuse_while_used(
        "sellpage", "sync.sellpages", "sync.campaigns", "sellpage_id", "campaigns"
    ),
)
synced_campaigns = Resource(
    struct=SyncedCampaign,
    name="campaign",
    function_name="synced_campaign",
    noun="synced_campaign",
    path=f"{PREFIX}/campaigns",
    table_name="sync.campaigns",
    references={"ad_account_id": ad_accounts, "sellpage_id": sellpages},
    parents=("ad_account_id", "sellpage_id"),
    **OF_A_SELLER,
    docs={
        "create": "Make a campaign of an ad account.",
        "list": "List the campaigns of ad accounts.",
        "delete": "Delete a campaign that has no ad sets any more; what it has cost stays in the reports.",
    },
    filters=("status", "ad_account_id", "sellpage_id"),
    search=("name", "external_campaign_id"),
    sort=("name", "status", "budget"),
    check=_keep_terms("synced campaign", "ad_account_id"),
    before_delete=_refuse_while_used(
        "synced campaign", "sync.campaigns", "sync.adsets", "campaign_id", "ad sets"
    ),
    taken=_make_taken_error("synced campaign", "externalCampaignId"),
)
adsets = Resource(
    struct=Adset,
    name="adset",
    article="an",
    path=f"{PREFIX}/adsets",
    table_name="sync.adsets",
    references={"campaign_id": synced_campaigns},
    parents=("campaign_id",),
    **OF_A_SELLER,
    docs={
        "create": "Make an ad set of a campaign.",
        "delete": "Delete an ad set that has no ads any more; what it has cost stays in the reports.",
    },
    filters=("status", "campaign_id"),
    search=("name", "external_adset_id"),
    sort=("name", "status"),
    check=_keep_terms("adset", "campaign_id"),
    before_delete=_refuse_while_used("adset", "sync.adsets", "sync.ads", "adset_id", "ads"),
    taken=_make_taken_error("adset", "externalAdsetId"),
)
ads = Resource(
    struct=Ad,
    name="ad",
    article="an",
    path=f"{PREFIX}/ads",
    table_name="sync.ads",
    references={"adset_id": adsets},
    parents=("adset_id",),
    **OF_A_SELLER,
    docs={
        "create": "Make an ad of an ad set.",
        "delete": "Delete an ad; what it has cost stays in the reports.",
    },
    filters=("status", "adset_id"),
    search=("name", "external_ad_id"),
    sort=("name", "status"),
    check=_keep_terms("ad", "adset_id"),
    taken=_make_taken_error("ad", "externalAdId"),
)
