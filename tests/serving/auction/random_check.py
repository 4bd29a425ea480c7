"""Compares the fast auction with the reference auction over random markets."""

import functools
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from adloom.auction.bid import Bid, BidOutcome, OwnBids
from adloom.auction.learned import LEARNED
from adloom.auction.run import run_auction
from adloom.auction.score import HEURISTIC, Heuristic, Scorer, Scoring, rate_quality
from adloom.serving.auction.funnel import BIDS_MAX, build_funnel
from adloom.serving.auction.market import Markets
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.bid_block import Bidder, build_bid_blocks, find_format, lower_bid
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import Index, replace_placements
from adloom.serving.index.rows import AssignmentRow, AssignmentStatus, Delivery, PlacementRow, Snapshot
from adloom.serving.index.steps import run_steps
from adloom.targeting.context import Context
from adloom.targeting.evaluate import matches_all
from tests.serving.auction.random_market import (
    NOW,
    RARE_CLICK,
    UNEVEN,
    RandomRequest,
    RareClickPolicy,
    UnevenPolicy,
    build_learned_policy,
    build_market,
    build_request,
)

REQUESTS_A_MARKET: Final = 40
EXCLUDED_MAX: Final = 4


@functools.cache
def build_policies() -> dict[str, Scoring]:
    return {
        HEURISTIC: Heuristic(),
        UNEVEN: UnevenPolicy(),
        RARE_CLICK: RareClickPolicy(),
        LEARNED: build_learned_policy(),
    }


class CheckedAd(msgspec.Struct, frozen=True):
    """An ad as policies see it."""

    campaign_key: int
    banner_key: int
    placement_key: int
    format: str


class Disagreement(Exception):  # noqa: N818 - it is what is looked for
    """The fast auction differs from the reference auction."""


def compare_auctions(seed: int) -> int:
    """Compare over one random market; return the number of auctions."""
    chance = Random(seed)  # noqa: S311 - not a secret
    snapshot = build_market(chance)
    index = _split_blocks(
        compile_index(snapshot),
        first_max=chance.choice([1, 2, 1_024]),
        block_max=chance.choice([1, 2, 3, 1_024]),
    )
    own_bids = chance.choice(list(OwnBids))
    states = PlacementStates()
    markets = Markets(
        states, policies=build_policies(), own_bids=own_bids, strongest_max=chance.choice([1, 4, 30])
    )
    if chance.random() < 1 / 2:
        markets.install(run_steps(markets.prepare(index, now=NOW, bidders_max=chance.choice([1, 3, 9]))))
    excluded: set[int] = set()
    for _ in range(REQUESTS_A_MARKET):
        _exclude(chance, states, excluded, snapshot)
        _lower(chance, states, snapshot)
        request = build_request(chance, snapshot.placements)
        bids_max = chance.choice([1, 3, BIDS_MAX])
        fast = _run_fast(markets, index, request, bids_max)
        plain = _run_plain(lower_snapshot(snapshot, states), request, excluded, own_bids, bids_max)
        if fast != plain:
            raise Disagreement(f"seed {seed}: {fast} is not {plain} for {request}, {own_bids}")
    return REQUESTS_A_MARKET


def _split_blocks(index: Index, *, first_max: int, block_max: int) -> Index:
    """Split the bids into more blocks than so few bids would fill."""
    placements = [
        msgspec.structs.replace(
            placement,
            blocks=tuple(
                run_steps(
                    build_bid_blocks(
                        [
                            one
                            for block in placement.blocks
                            for one in block.candidates
                            if isinstance(one, Bidder)
                        ],
                        first_max=first_max,
                        block_max=block_max,
                        own_min=1,
                    )
                )
            ),
        )
        if placement.delivery is Delivery.AUCTION
        else placement
        for placement in index.by_key.values()
    ]
    return replace_placements(
        index,
        version=index.version,
        gone=[placement.key for placement in placements],
        placements=placements,
        banner_ids=index.banner_ids,
        campaign_ids=index.campaign_ids,
    )


def _exclude(chance: Random, states: PlacementStates, excluded: set[int], snapshot: Snapshot) -> None:
    for row in chance.sample(snapshot.assignments, min(len(snapshot.assignments), EXCLUDED_MAX)):
        if chance.random() < 1 / 2:
            excluded.symmetric_difference_update({row.campaign_key})
            is_out = row.campaign_key in excluded
            states.mark_changed({row.campaign_key: "daily_budget" if is_out else None})


def _lower(chance: Random, states: PlacementStates, snapshot: Snapshot) -> None:
    """Let some campaigns bid less from now on, or in full again."""
    if chance.random() < 1 / 2:
        keys = {row.campaign_key for row in snapshot.assignments}
        states.set_multipliers(
            {key: chance.choice([0.01, 0.3, 0.5, 0.999, 1.0]) for key in keys if chance.random() < 1 / 3}
        )


def lower_snapshot(snapshot: Snapshot, states: PlacementStates) -> Snapshot:
    """Return the market with the bids that campaigns make now."""
    return msgspec.structs.replace(
        snapshot,
        assignments=[
            msgspec.structs.replace(row, bid=lower_bid(row.bid, states.multipliers[row.campaign_key]))
            if row.bid and row.campaign_key in states.multipliers
            else row
            for row in snapshot.assignments
        ],
    )


class ComparedResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an auction, in a form that both implementations have."""

    winner: tuple[int, int, int] | None = None
    ecpm: int = 0
    second: int | None = None
    final: int = 0
    charge: int = 0
    bids: list[tuple[int, tuple[int, int, int]]] = []
    bid_count: int = 0
    under_floor: int = 0


def _run_fast(markets: Markets, index: Index, request: RandomRequest, bids_max: int) -> ComparedResult:
    if request.slug is not None:
        market = markets.find_by_slug(index, request.slug, now=NOW)
    else:
        market = markets.find_by_type(index, request.placement_type, now=NOW)
    if market is None:
        return ComparedResult()
    contexts = [_shift_to_zone(request.context, zone) for zone in market.zones]
    scorers = markets.build_scorers(market, request.signals)
    absent = {"seen_enough": request.seen_enough, "unreserved": request.unreserved}
    win, _ = markets.decide(market, contexts, scorers, **absent)
    field = build_funnel(market.plan_scan(scorers), contexts, scorers, **absent, bids_max=bids_max)
    result = ComparedResult(
        bids=[(-rank, bidder.seniority) for rank, bidder, _ in field.bids],
        bid_count=field.bid_count,
        under_floor=field.under_floor,
    )
    if win is None:
        return result
    return msgspec.structs.replace(
        result,
        winner=win.bidder.seniority,
        ecpm=win.ecpm,
        second=win.second,
        final=win.final,
        charge=win.charge,
    )


def _run_plain(
    snapshot: Snapshot, request: RandomRequest, excluded: set[int], own_bids: OwnBids, bids_max: int
) -> ComparedResult:
    result = run_auction(_build_bids(snapshot, request, excluded), own_bids=own_bids)
    taking_part = [one for one in result.placed if one.outcome is not BidOutcome.UNDER_FLOOR]
    return ComparedResult(
        winner=result.winner and result.winner.seniority,
        ecpm=result.ecpm,
        second=result.second,
        final=result.final,
        charge=result.charge,
        bids=[(one.ecpm, one.bid.seniority) for one in taking_part[:bids_max]],
        bid_count=len(taking_part),
        under_floor=len(result.placed) - len(taking_part),
    )


def _build_bids(snapshot: Snapshot, request: RandomRequest, excluded: set[int]) -> list[Bid]:
    scorers = {name: policy.build_scorer(request.signals) for name, policy in build_policies().items()}
    bids: list[Bid] = []
    for placement in snapshot.placements:
        is_requested = placement.placement_type == request.placement_type and (
            request.slug is None or request.slug == placement.slug.encode()
        )
        if not (is_requested and placement.is_active and placement.delivery is Delivery.AUCTION):
            continue
        context = _shift_to_zone(request.context, ZoneInfo(placement.timezone))
        bids += [
            _build_bid(row, placement, scorers[placement.scoring])
            for row in snapshot.assignments
            if row.placement_key == placement.key
            and _may_bid(row, context)
            and row.campaign_key not in excluded | request.unreserved
            and row.banner_key not in request.seen_enough
        ]
    return bids


def _may_bid(row: AssignmentRow, context: Context) -> bool:
    return (
        row.status is AssignmentStatus.LIVE
        and bool(row.bid)
        and (row.starts_at is None or row.starts_at <= NOW)
        and (row.ends_at is None or row.ends_at > NOW)
        and matches_all(row.rules, context)
    )


def _build_bid(row: AssignmentRow, placement: PlacementRow, scorer: Scorer) -> Bid:
    assert row.bid is not None
    ad_format = find_format(row)
    ad = CheckedAd(row.campaign_key, row.banner_key, placement.key, ad_format)
    return Bid(
        campaign_key=row.campaign_key,
        banner_key=row.banner_key,
        placement_key=placement.key,
        advertiser_key=row.advertiser_key,
        bid_type=row.bid_type,
        bid=row.bid,
        ctr=scorer.predict_ctr(ad),
        quality=rate_quality(ad_format),
        floor=placement.floor,
    )


def _shift_to_zone(context: Context, zone: ZoneInfo) -> Context:
    """Convert the hour of a context from UTC; days do not matter here."""
    offset = zone.utcoffset(NOW)
    assert offset is not None
    return msgspec.structs.replace(context, hour=(context.hour + int(offset.total_seconds()) // 3_600) % 24)
