"""The explanation of a placement over HTTP, on the control plane."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Annotated
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
from fastapi import Path, Query, Request
from pydantic import Field

from adloom.core.caller import Role
from adloom.core.errors import PlacementNotFoundError
from adloom.explain.placement.verdict import CandidateVerdict, explain_placement, show_in_full
from adloom.explain.publisher_view import show_to_publisher
from adloom.explain.reasons import CandidateOutcome, RequestFacts
from adloom.explain.store import read_placement
from adloom.resource.names import read_names
from adloom.runtime.http.api.dependencies import CurrentCaller, Database, Now, make_router
from adloom.runtime.http.api.shapes import Answer, Body, Moment, Text
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.schedule.schedule import find_zone
from adloom.serving.request.context import ContextParser
from adloom.targeting.context import Context, hash_context

OWN_HEADERS = frozenset({b"authorization", b"x-api-key"})  # They belong to the caller, not to the visitor.

UTC_ZONE = ZoneInfo("UTC")

_contexts = cache(ContextParser)  # Not at import: compiling its patterns takes a quarter of a second.

Stated = Annotated[Text | None, Field(description="Instead of what headers say.")]
RemovedCounts = Annotated[
    dict[str, int], Field(description="How many were removed, by the step that did it.")
]


class VisitorQuery(Body):
    """The parameters of the serve routes, which are parsed as there."""

    device: Stated = None
    country: Stated = None
    language: Stated = None
    logged_in: Stated = None
    new_visitor: Stated = None
    referrer: Stated = None
    segment: Stated = None
    user_id: Stated = None


class ExplainQuery(VisitorQuery):
    """A visitor, and a moment."""

    at: Annotated[
        Moment | None,
        Field(description="As if it were this moment; counts and budgets stand as they do now."),
    ] = None


class ExplainedContext(Answer):
    """The request as the rules saw it."""

    device: str | None
    country: str | None
    language: str | None
    is_logged_in: Annotated[bool, Field(serialization_alias="loggedIn")]
    is_new_visitor: Annotated[bool, Field(serialization_alias="newVisitor")]
    referrer_domain: str | None
    segment: str | None
    hour: int
    day: Annotated[int, Field(description="0 is Sunday.")]
    hash: str


class ExplainedCandidate(Answer):
    """What became of one candidate, and what would have to change."""

    ad_id: UUID
    campaign_id: UUID
    campaign_name: str | None
    title: str
    outcome: CandidateOutcome
    removed_by: str | None = None
    reason: str
    change: str | None = None


class Explanation(Answer):
    """All candidates of a placement, in the order in which they fill slots."""

    candidates: list[ExplainedCandidate]
    winner: Annotated[UUID | None, Field(description="The banner in the first slot, if you may see it.")]
    winners: list[UUID]
    removed: RemovedCounts
    context: ExplainedContext


router = make_router("/banners/explain", "delivery", 400, 401, 404, 503)


@router.get("/{slug}")
async def explain(  # noqa: PLR0913, PLR0917 - what the framework hands in
    slug: Annotated[Text, Path(max_length=100)],
    query: Annotated[ExplainQuery, Query()],
    request: Request,
    caller: CurrentCaller,
    pool: Database,
    now: Now,
) -> Explanation:
    """Say of every candidate why it is shown or not, for a visitor with these headers or parameters.

    The parameters are those of the serve route; a bearer token here is yours, not the visitor's.
    An advertiser sees its own candidates. A publisher sees its own placements: of others' campaigns, that something
    keeps an ad away, without their budgets, caps, dates and targeting.
    """
    is_publisher = caller.role is Role.PUBLISHER
    async with pool.acquire() as connection:
        found = await read_placement(
            connection,
            slug,
            publisher_id=caller.account_id if is_publisher else None,
            now=now,
        )
    if found is None:
        raise PlacementNotFoundError("There is no placement with this slug.")
    [rows] = found.placements
    moment = query.at or now
    context = parse_context(build_visitor_request(request), rows.placement.timezone, moment)
    facts = RequestFacts(
        context=context,
        counts=found.counts,
        budgets=found.budgets,
        now=moment,
        throttles={} if is_publisher else found.throttles,
    )
    verdicts = explain_placement(rows, facts, show_to_publisher if is_publisher else show_in_full)
    if caller.role is Role.ADVERTISER:
        own = {row.campaign_id for row in rows.assignments if row.advertiser_id == caller.account_id}
        verdicts = [one for one in verdicts if one.campaign_id in own]
    async with pool.acquire() as connection:
        names = await read_names(connection, (one.campaign_id for one in verdicts))
    return _show(verdicts, context, names)


def build_visitor_request(request: Request) -> FastRequest:
    """Turn a request to the control plane into a visitor's, without the credentials."""
    return FastRequest(
        method=b"GET",
        path=request.url.path.encode(),
        query=request.url.query.encode(),
        headers=[pair for pair in request.headers.raw if pair[0] not in OWN_HEADERS],
        client=request.client.host if request.client else None,
    )


def parse_context(visitor: FastRequest, timezone: str, now: datetime) -> Context:
    """Parse what rules ask of a visitor's request, in the time zone of the placement."""
    return _contexts().parse(visitor, find_zone(timezone) or UTC_ZONE, now)


def _show(verdicts: list[CandidateVerdict], context: Context, names: Mapping[UUID, str]) -> Explanation:
    winners: list[UUID] = [one.banner_id for one in verdicts if one.outcome is CandidateOutcome.WON]
    return Explanation(
        candidates=[
            ExplainedCandidate(
                ad_id=one.banner_id, campaign_name=names.get(one.campaign_id), **msgspec.structs.asdict(one)
            )
            for one in verdicts
        ],
        winner=winners[0] if winners else None,
        winners=winners,
        removed=Counter(one.removed_by for one in verdicts if one.removed_by is not None),
        context=ExplainedContext(hash=hash_context(context), **msgspec.structs.asdict(context)),
    )
