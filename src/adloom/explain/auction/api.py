"""The explanation of an auction over HTTP, on the control plane."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Annotated, cast
from uuid import UUID

from fastapi import Query, Request
from pydantic import Field, PlainSerializer, WithJsonSchema

from adloom.auction.bid import CTR_ONE, QUALITY_ONE, OwnBids
from adloom.auction.learned import LEARNED, LearnedScoring
from adloom.auction.model import UnreadableModelError, decode_model
from adloom.auction.score import HEURISTIC, Heuristic, Scorer, Scoring
from adloom.core.errors import PlacementNotFoundError
from adloom.core.ids import NO_USER
from adloom.core.money import Micros, decimal_from_micros
from adloom.events.ctr.publish import MODEL
from adloom.explain.auction.verdict import AuctionFacts, ExplainedMarket, JudgedBid, explain_market
from adloom.explain.placement.api import ExplainQuery, RemovedCounts, build_visitor_request, parse_context
from adloom.explain.reasons import CandidateOutcome
from adloom.explain.store import ExplainedRows, find_seen_enough, read_market
from adloom.resource.api import AdvertiserReads
from adloom.resource.names import read_names
from adloom.runtime.http.api.dependencies import Database, Now, make_router
from adloom.runtime.http.api.shapes import Answer, Body, Text
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.runtime.settings import AuctionSettings
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.serving.auction.request import CONTEXT_KEYS_MAX, DEFAULT_TYPE, VisitorInfo, parse_visitor
from adloom.serving.eligibility.frequency_lookup import CappedAds
from adloom.targeting.context import Context

CANDIDATES_MAX = 1_000  # More than anybody reads; bids that took part come first.
BID_STEP = 100  # In micros: a bid has at most four places.
NOT_YOURS = "Null where it is not the caller's own."

AmountShown = Annotated[
    Decimal, PlainSerializer(float), WithJsonSchema({"type": "number"}, mode="serialization")
]


class AuctionBody(Body):
    """The body of the serve route."""

    user_id: UUID
    placement_type: Annotated[Text, Field(min_length=1, max_length=50)] | None = None
    placement: Annotated[Text, Field(min_length=1, max_length=100)] | None = None
    user_context: Annotated[dict[Text, Text], Field(max_length=CONTEXT_KEYS_MAX)] | None = None


class ExplainedBid(Answer):
    """What became of one candidate; of another account's, only the outcome is shown."""

    ad_id: Annotated[UUID | None, Field(description=NOT_YOURS)] = None
    campaign_id: UUID | None = None
    campaign_name: str | None = None
    placement_id: UUID | None = None
    title: str | None = None
    outcome: CandidateOutcome
    removed_by: str | None = None
    reason: str | None = None
    change: str | None = None
    bid: Annotated[AmountShown | None, Field(description="The campaign's own, by its `bidType`.")] = None
    bid_type: str | None = None
    bid_amount: Annotated[AmountShown | None, Field(description="Per thousand clicks.")] = None
    predicted_ctr: float | None = None
    quality_score: float | None = None
    ecpm: Annotated[AmountShown | None, Field(description="Per thousand impressions.")] = None
    would_have_to_bid: Annotated[
        AmountShown | None,
        Field(
            description="The lowest own bid that would have won, for an account one in a coarse band above it;"
            " null for the winner."
        ),
    ] = None


class ExplainedAuction(Answer):
    """An auction that was not held: nothing is counted, held or charged."""

    candidates: Annotated[
        list[ExplainedBid], Field(description="At most 1,000; bids that took part come first.")
    ]
    candidate_count: int
    removed: RemovedCounts
    winner: Annotated[UUID | None, Field(description=NOT_YOURS)]
    final_price: Annotated[AmountShown | None, Field(description=f"Per thousand impressions. {NOT_YOURS}")]
    charge: Annotated[
        AmountShown | None,
        Field(description=f"Per click or per thousand impressions, as the winner bids. {NOT_YOURS}"),
    ]


router = make_router("/api/v1/ads/explain", "auctions", 400, 401, 403, 404, 413, 503)


@router.post("")
async def explain_auction(  # noqa: PLR0913, PLR0917 - what the framework hands in
    body: AuctionBody,
    query: Annotated[ExplainQuery, Query()],
    request: Request,
    scope: AdvertiserReads,
    pool: Database,
    now: Now,
) -> ExplainedAuction:
    """Say of every candidate why it would win an auction or not, and what it would have had to bid.

    An advertiser sees its own candidates; of the others, that they take part.
    """
    valkey: Valkey = request.app.state.valkey
    settings: AuctionSettings = request.app.state.auctions
    visitor, asked = parse_visitor(body.user_context), build_visitor_request(request)
    placement_type = body.placement_type or (DEFAULT_TYPE if body.placement is None else None)
    async with pool.acquire() as connection:
        market = await read_market(connection, slug=body.placement, placement_type=placement_type, now=now)
    if market is None:
        raise PlacementNotFoundError(
            "No active placement of this slug or placementType is filled by auction."
        )
    zones = {one.placement.timezone for one in market.placements}
    moment = query.at or now
    # Ten thousand candidates take a quarter of a second; a thread lets the loop go on.
    found = await asyncio.to_thread(
        explain_market,
        market.placements,
        AuctionFacts(
            contexts={zone: _build_context(asked, visitor, zone, moment) for zone in zones},
            scorers=await _build_scorers(market, asked, visitor, valkey, moment),
            counts=market.counts,
            budgets=market.budgets,
            seen_enough=await _find_seen_enough(market, body.user_id, valkey, settings, now),
            own_bids=OwnBids(settings.own_bids),
            now=moment,
        ),
    )
    own = [one.row.campaign_id for one in found.candidates if _is_visible(one, scope.account_id)]
    async with pool.acquire() as connection:
        names = await read_names(connection, own)
    return _show(found, scope.account_id, names)


def _build_context(request: FastRequest, visitor: VisitorInfo, zone: str, now: datetime) -> Context:
    return visitor.overrides.apply_to(parse_context(request, zone, now))


async def _build_scorers(
    market: ExplainedRows, request: FastRequest, visitor: VisitorInfo, valkey: Valkey, now: datetime
) -> dict[str, Scorer]:
    """Score as delivery does, with the published model."""
    first = market.placements[0].placement
    signals = visitor.build_signals(
        first.placement_type, _build_context(request, visitor, first.timezone, now)
    )
    policies: dict[str, Scoring] = {HEURISTIC: Heuristic()}
    if any(one.placement.scoring == LEARNED for one in market.placements):
        policies[LEARNED] = await _load_learned(valkey)
    return {name: policy.build_scorer(signals) for name, policy in policies.items()}


async def _load_learned(valkey: Valkey) -> LearnedScoring:
    try:
        # The stubs know every decoding; ours answers bytes.
        blob = cast("bytes | None", await valkey.get(MODEL))
        return LearnedScoring(None if blob is None else decode_model(blob))
    except (*VALKEY_AWAY, UnreadableModelError):
        return LearnedScoring()


async def _find_seen_enough(
    market: ExplainedRows, user_id: UUID, valkey: Valkey, settings: AuctionSettings, now: datetime
) -> frozenset[int]:
    """Return the banners that the user has seen often enough, by key; without a user, as the operator decided."""
    rows = [row for one in market.placements for row in one.assignments]
    if user_id != NO_USER:
        return await find_seen_enough(valkey, rows, user_id, now)
    is_withheld = settings.frequency_without_user == CappedAds.WITHHOLD
    return frozenset(row.banner_key for row in rows if row.frequency and is_withheld)


def _show(found: ExplainedMarket, account_id: UUID | None, names: Mapping[UUID, str]) -> ExplainedAuction:
    # A candidate that took no part is shown to its owner only.
    shown = [
        one
        for one in found.candidates
        if _is_visible(one, account_id) or one.outcome is not CandidateOutcome.REMOVED
    ]
    winner = next((one for one in found.candidates if one.outcome is CandidateOutcome.WON), None)
    is_shown = winner is not None and _is_visible(winner, account_id)
    return ExplainedAuction(
        candidates=[
            _show_own(one, names, is_exact=account_id is None)
            if _is_visible(one, account_id)
            else ExplainedBid(outcome=one.outcome)
            for one in shown[:CANDIDATES_MAX]
        ],
        candidate_count=len(shown),
        removed=Counter(one.reason.name for one in shown if one.outcome is CandidateOutcome.REMOVED),
        winner=winner.row.banner_id if is_shown and winner is not None else None,
        final_price=_convert_amount(found.result.final) if is_shown else None,
        charge=_convert_amount(found.result.charge) if is_shown else None,
    )


def _is_visible(one: JudgedBid, account_id: UUID | None) -> bool:
    return account_id is None or one.row.advertiser_id == account_id


def _show_own(one: JudgedBid, names: Mapping[UUID, str], *, is_exact: bool) -> ExplainedBid:
    row = one.row
    to_win = one.would_have_to_bid if is_exact else one.bid_in_band
    return ExplainedBid(
        ad_id=row.banner_id,
        campaign_id=row.campaign_id,
        campaign_name=names.get(row.campaign_id),
        placement_id=one.placement.id,
        title=row.title,
        outcome=one.outcome,
        removed_by=one.reason.name if one.outcome is CandidateOutcome.REMOVED else None,
        reason=one.reason.sentence,
        change=one.reason.change,
        bid=_convert_amount(row.bid),
        bid_type=row.bid_type.value,
        bid_amount=_convert_amount(one.bid_amount),
        predicted_ctr=one.ctr / CTR_ONE,
        quality_score=one.quality / QUALITY_ONE,
        ecpm=_convert_amount(one.ecpm),
        would_have_to_bid=_convert_amount(_round_up(to_win)),
    )


def _round_up(micros: Micros | None) -> Micros | None:
    """Round up to the next possible bid, so that it is enough."""
    return None if micros is None else Micros(-(-micros // BID_STEP) * BID_STEP)


def _convert_amount(micros: Micros | None) -> Decimal | None:
    return None if micros is None else decimal_from_micros(micros)
