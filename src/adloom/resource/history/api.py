"""The audit trail over HTTP."""

from typing import Annotated, Any, ClassVar
from uuid import UUID

import msgspec
from fastapi import Query
from pydantic import Field

from adloom.resource.api import CurrentCatalog, make_catalog_router
from adloom.resource.forms import build_answer
from adloom.resource.history import store
from adloom.resource.shapes import MomentOrDay, MomentOrEndOfDay
from adloom.runtime.http.api.dependencies import CurrentCaller
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Text100, Text255
from adloom.runtime.listing import PageRequest


class AuditQuery(ListQuery):
    """How the trail is filtered: from a moment or a day on, up to a moment or through a day."""

    SORTABLE: ClassVar = frozenset({"at"})

    sort: Text255 = "-at"
    noun: Text100 | None = None
    noun_id: Text255 | None = None
    campaign_id: Annotated[
        UUID | None, Field(description="With its links, assignments, creatives and targeting rules.")
    ] = None
    site_id: Annotated[
        UUID | None,
        Field(description="With its pages that were given or removed by hand, and decisions about banners."),
    ] = None
    subject: Annotated[
        Text255 | None, Field(description="Who did it; admins and viewers may give an e-mail address.")
    ] = None
    since: Annotated[MomentOrDay | None, Field(alias="from")] = None
    before: Annotated[MomentOrEndOfDay | None, Field(alias="to")] = None

    @property
    def page_request(self) -> PageRequest:
        """Entries are numbered in the order in which they were written, and that is indexed."""
        return msgspec.structs.replace(super().page_request, sort="id")


ANSWER = build_answer(
    "AuditAnswer",
    "Who (`subject`, `role`, for which `accountId`) did what to which row, and what it changed.",
    store.AuditEntry,
)

router = make_catalog_router("/admin/audit", tag="history")


@router.get("", response_model=Page[ANSWER])
async def list_audit_entries(
    query: Annotated[AuditQuery, Query()], caller: CurrentCaller, catalog: CurrentCatalog
) -> Page[Any]:
    """Read who changed what, newest first; an account reads what is about its own rows."""
    filters = store.build_filters(
        caller,
        noun=query.noun,
        noun_id=query.noun_id,
        subject=query.subject,
        since=query.since,
        before=query.before,
        campaign_id=query.campaign_id,
        site_id=query.site_id,
    )
    async with catalog.read() as connection:
        listed = await store.read_page(connection, caller, filters, query.page_request)
    return build_page(ANSWER, listed if caller.sees_all else store.hide_networks(listed), query)
