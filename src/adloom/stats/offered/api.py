"""Placements that campaigns can ask for, over HTTP: what they are, what they cost, and how often they are asked for and seen."""

from datetime import date
from typing import Annotated, Any, ClassVar, Final

from fastapi import Query

from adloom.budgets.traffic.counts import PlacementRequests, read_placement_requests
from adloom.resource.api import AdvertiserReads
from adloom.resource.forms import build_answer
from adloom.runtime.http.api.dependencies import CurrentValkey, Database, Now, guarded_router
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import Text255
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.stats.offered.store import OfferedPlacement, OfferedQuestion, read_offered


class OfferedQuery(ListQuery):
    """Which placements; a text is looked for in labels, slugs and sites."""

    SORTABLE: ClassVar = frozenset({"label", "impressions_per_day", "requests_per_day"})

    sort: Text255 = "label"
    search: Text255 | None = None


OFFERED_ANSWER: Final = build_answer(
    "OfferedPlacementAnswer", "A placement that a campaign can ask for.", OfferedPlacement
)
router = guarded_router("/admin/offered-placements", "placements", 400, 401, 403, 503)


@router.get("", response_model=Page[OFFERED_ANSWER])
async def list_offered_placements(
    query: Annotated[OfferedQuery, Query()],
    _scope: AdvertiserReads,
    pool: Database,
    valkey: CurrentValkey,
    now: Now,
) -> Page[Any]:
    """List the placements that campaigns can use or ask for, of all publishers: by name, with size, site, price and requests a day."""
    question = OfferedQuestion(query.search, now.date(), await _find_requests(valkey, now.date()))
    async with pool.acquire() as connection:
        listed = await read_offered(connection, question, query.page_request)
    return page_of(OFFERED_ANSWER, listed, query)


async def _find_requests(valkey: Valkey, today: date) -> PlacementRequests | None:
    """Return how often placements were asked for; None while Valkey is away, since placements can be chosen without it."""
    try:
        return await read_placement_requests(valkey, today)
    except VALKEY_AWAY:
        return None
