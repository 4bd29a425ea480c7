"""The explanation of a contextual slot over HTTP, on the control plane."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from fastapi import Query, Request
from pydantic import Field

from adloom.auction.creative_choice import ChoiceMethod
from adloom.core.caller import Caller, Role
from adloom.core.errors import PlacementNotFoundError
from adloom.core.ids import NO_USER
from adloom.explain.contextual.store import SlotFacts, read_slot
from adloom.explain.contextual.verdict import AskedSlot, CreativeVerdict, explain_slot, find_throttle
from adloom.explain.placement.api import VisitorQuery, build_visitor_request, parse_context
from adloom.explain.publisher_view import show_name_to_publisher
from adloom.explain.reasons import CandidateOutcome
from adloom.explain.store import find_seen_enough
from adloom.market.auctioneer.select import expand_categories
from adloom.pages.follow.page_table import PageState
from adloom.resource.names import read_names
from adloom.resource.shapes import PriceShown
from adloom.runtime.http.api.dependencies import (
    CurrentCaller,
    CurrentValkey,
    Database,
    Now,
    make_router,
)
from adloom.runtime.http.api.shapes import Answer, Body, Text
from adloom.runtime.random import make_chance
from adloom.runtime.settings import AuctionSettings
from adloom.runtime.valkey import Valkey
from adloom.serving.contextual.page_host import SiteHostMismatchError, parse_page_url
from adloom.serving.contextual.page_lookup import find_obstacle
from adloom.serving.contextual.prepare import build_rules
from adloom.serving.index.compile import compile_slot
from adloom.taxonomy.iab import load_content

NOT_FOR_PUBLISHERS = "Null for a publisher: bids and prices are the advertisers'."


class SlotQuestion(Body):
    """A slot, and the page that it is on."""

    slot: Annotated[Text, Field(min_length=1, max_length=100)]
    url: Annotated[Text, Field(max_length=8_192)]
    user_id: UUID | None = None


class ExplainedPageCategory(Answer):
    """What the page is about."""

    id: str
    name: str
    confidence: float


class ExplainedPage(Answer):
    """The page as it is known."""

    url: str
    state: PageState
    categories: Sequence[ExplainedPageCategory]


class ExplainedCreative(Answer):
    """What became of one creative; prices are per thousand impressions."""

    banner_id: UUID
    campaign_id: UUID
    campaign_name: str | None
    title: str
    outcome: CandidateOutcome
    removed_by: str | None = None
    category: str | None
    category_score: float
    max_cpm: Annotated[PriceShown | None, Field(description=NOT_FOR_PUBLISHERS)] = None
    sampled_ctr: float | None = None
    score: float | None = None
    price_cpm: PriceShown | None = None


class SlotExplanation(Answer):
    """Why a slot of a page is filled as it is; nothing is held, counted or charged."""

    page: ExplainedPage
    throttle: Annotated[
        float | None,
        Field(
            description=(
                "The share that pacing holds back now, of the campaigns that nothing else keeps from the slot: for an "
                "advertiser of its own, for a publisher null."
            )
        ),
    ]
    candidates: Sequence[ExplainedCreative]
    winner: UUID | None
    price_cpm: PriceShown | None


router = make_router("/v1/explain", "delivery", 400, 401, 403, 404, 413, 503)


@router.post("")
async def explain_contextual_slot(  # noqa: PLR0913, PLR0917 - what the framework hands in
    body: SlotQuestion,
    _visitor: Annotated[VisitorQuery, Query()],  # Read from the request.
    request: Request,
    caller: CurrentCaller,
    pool: Database,
    valkey: CurrentValkey,
    now: Now,
) -> SlotExplanation:
    """Say of every creative that wants a slot of a page why it is shown there or not; with `userId`, to this visitor.

    An advertiser sees its own creatives. A publisher sees its own slots, without bids, scores, prices and pace. The
    winner is drawn anew with every question, as it is with every visitor.
    """
    url = parse_page_url(body.url)
    settings: AuctionSettings = request.app.state.auctions
    async with pool.acquire() as connection:
        facts = await read_slot(
            connection,
            body.slot,
            url.text,
            publisher_id=caller.account_id if caller.role is Role.PUBLISHER else None,
            now=now,
        )
    if facts is None:
        raise PlacementNotFoundError("There is no contextual placement with this slug.")
    if not facts.site.has_host(url.host):
        raise SiteHostMismatchError("The host of `url` is not one of the site's.")
    slot = compile_slot(facts.placement)
    scores = expand_categories(
        [(one.id, one.confidence) for one in facts.categories],
        lambda category: facts.weights[category],
        load_content().list_ancestors,
    )
    asked = AskedSlot(
        rules=build_rules(slot, facts.site),
        scores=scores,
        context=parse_context(build_visitor_request(request), facts.placement.timezone, now),
        now=now,
        budgets=facts.budgets,
        seen_enough=await _find_seen_enough(valkey, facts, body.user_id, now),
        obstacle=find_obstacle(facts.site, facts.state),
        floors=facts.floors,
        listed=facts.listed,
        results=facts.results,
        method=ChoiceMethod(settings.creative_choice),
    )
    verdicts = explain_slot(asked, facts.campaigns, make_chance())
    verdicts = _show_to(caller, facts, verdicts)
    # With few campaigns their share is the pace of one, which is its advertiser's business.
    throttle = None if caller.role is Role.PUBLISHER else find_throttle(verdicts, facts.throttles)
    async with pool.acquire() as connection:
        names = await read_names(connection, (one.campaign_id for one in verdicts))
    return _show(url.text, facts, verdicts, throttle, names)


async def _find_seen_enough(
    valkey: Valkey, facts: SlotFacts, user_id: UUID | None, now: datetime
) -> frozenset[int]:
    """Return the banners that the visitor has seen often enough; none without a visitor, as in delivery."""
    if user_id is None or user_id == NO_USER:
        return frozenset()
    rows = (row.assignment for rows in facts.campaigns for row in rows)
    return await find_seen_enough(valkey, rows, user_id, now)


def _show_to(caller: Caller, facts: SlotFacts, verdicts: Sequence[CreativeVerdict]) -> list[CreativeVerdict]:
    """Return what a caller may see: an advertiser its own creatives, a publisher no bids and scores."""
    if caller.role is Role.ADVERTISER:
        own = {
            row.assignment.campaign_id
            for rows in facts.campaigns
            for row in rows
            if row.assignment.advertiser_id == caller.account_id
        }
        return [one for one in verdicts if one.campaign_id in own]
    if caller.role is Role.PUBLISHER:
        return [_hide_figures(one) for one in verdicts]
    return list(verdicts)


def _show(
    url: str,
    facts: SlotFacts,
    verdicts: Sequence[CreativeVerdict],
    throttle: float | None,
    names: Mapping[UUID, str],
) -> SlotExplanation:
    won = next((one for one in verdicts if one.outcome is CandidateOutcome.WON), None)
    return SlotExplanation(
        page=ExplainedPage(
            url=url,
            state=facts.state,
            categories=[ExplainedPageCategory.model_validate(one) for one in facts.categories],
        ),
        throttle=throttle,
        candidates=[
            ExplainedCreative(campaign_name=names.get(one.campaign_id), **msgspec.structs.asdict(one))
            for one in verdicts
        ],
        winner=None if won is None else won.banner_id,
        price_cpm=None if won is None else won.price_cpm,
    )


def _hide_figures(one: CreativeVerdict) -> CreativeVerdict:
    """Return a verdict as the slot's publisher may see it."""
    return msgspec.structs.replace(
        one,
        removed_by=show_name_to_publisher(one.removed_by),
        max_cpm=None,
        sampled_ctr=None,
        score=None,
        price_cpm=None,
    )
