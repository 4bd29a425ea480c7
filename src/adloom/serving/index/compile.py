"""From rows to an index: sorted, cut into blocks, encoded, with equal parts shared.

Compiling runs in small steps, so that the process can answer requests in between.
"""

# pure

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from adloom.core.delivery import Rotation
from adloom.core.ids import CampaignId, PlacementId
from adloom.events.ingest.token import SLOT_MAX
from adloom.market.approval import ApprovalRules
from adloom.schedule.schedule import ScheduleStatus, find_zone
from adloom.serving.index.bid_block import Bidder, build_bid_blocks, build_bidder, has_bid, render_ad
from adloom.serving.index.contextual import (
    ContextualCreative,
    CreativeRow,
    build_creative,
    render_creative,
)
from adloom.serving.index.index import (
    EMPTY,
    Block,
    Candidate,
    IdTable,
    Index,
    IndexedPlacement,
    Timing,
    Turn,
    replace_placements,
)
from adloom.serving.index.rendered_banner import (
    encode_creative,
    encode_placement_head,
    encode_placing,
    pack_ids,
)
from adloom.serving.index.rows import (
    EVERGREEN,
    HOLD_MIN,
    AssignmentRow,
    AssignmentStatus,
    Caps,
    Delivery,
    LeaseTerms,
    PlacementRow,
    PlacementRows,
    Snapshot,
    build_lease_terms,
)
from adloom.serving.index.site import NO_SITES, compile_site
from adloom.serving.index.steps import Steps, run_steps
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX
from adloom.targeting.bitmaps import compile_in_steps as compiling_rules
from adloom.targeting.values import find_landing_domain

T = TypeVar("T")
FillOrder = tuple[bool, float, int, int, int, int, bytes, bytes]
ORDER_OF_TIERS = 3  # The parts of the order before the weight.

ROWS_A_STEP = 64
CONTEXTUAL_TYPE = "contextual"
UTC_ZONE = ZoneInfo("UTC")
NEVER_SHOWN = frozenset({ScheduleStatus.DRAFT, ScheduleStatus.EXPIRED})


class Interner:
    """Makes equal things the same object while an index is compiled."""

    def __init__(self) -> None:
        self._things: dict[Any, Any] = {}

    def intern(self, thing: T) -> T:
        return self._things.setdefault(thing, thing)


def compile_index(snapshot: Snapshot) -> Index:
    shared = Interner()
    rows = group_rows(snapshot.placements, snapshot.assignments)
    return replace_placements(
        EMPTY,
        version=snapshot.version,
        gone=(),
        placements=[run_steps(compile_placement(one, shared)) for one in rows],
        banner_ids=IdTable()
        .with_more((one, None) for one in snapshot.banner_ids)
        .with_more((one.banner_id, one.banner_key) for one in snapshot.assignments),
        campaign_ids=IdTable().with_more((one, None) for one in snapshot.campaign_ids),
        sites=NO_SITES.replaced((), [compile_site(row, ApprovalRules()) for row in snapshot.sites]),
    )


def group_rows(
    placements: Iterable[PlacementRow], assignments: Iterable[AssignmentRow]
) -> list[PlacementRows]:
    by_placement: dict[int, list[AssignmentRow]] = {}
    for assignment in assignments:
        by_placement.setdefault(assignment.placement_key, []).append(assignment)
    return [PlacementRows(row, by_placement.get(row.key, [])) for row in placements]


def compile_placement(rows: PlacementRows, shared: Interner) -> Steps[IndexedPlacement]:
    if rows.placement.delivery is Delivery.AUCTION:
        return (yield from _compile_auctioned(rows, shared))
    return (yield from _compile_direct(rows, shared))


def _compile_direct(rows: PlacementRows, shared: Interner) -> Steps[IndexedPlacement]:
    row = rows.placement
    ordered = yield from _sort_rows(rows.assignments)
    primaries: list[Candidate] = []
    fallbacks: list[Candidate] = []
    evergreens: list[Candidate] = []
    known = _PlacementParts()
    for number, one in enumerate(ordered):
        if number % ROWS_A_STEP == 0:
            yield
        creative = shared.intern(encode_creative(one))
        pair = known.add_creative(one, creative)
        if not is_candidate(one):
            continue
        placing = shared.intern(encode_placing(one))
        candidate = _build_candidate(one, row, pair, creative, placing, shared)
        if not one.is_fallback:
            primaries.append(candidate)
        elif row.allow_partial_render:
            fallbacks.append(candidate)
        if one.is_evergreen_fallback:
            evergreens.append(candidate)
        known.add_limits(one, candidate)
        known.add_turn(one, row.rotation)
    primary_blocks = yield from _build_blocks(primaries)
    fallback_blocks = yield from _build_blocks(fallbacks)
    evergreen_blocks = yield from _build_blocks(evergreens, is_untargeted=True)
    blocks = (*primary_blocks, *fallback_blocks, *evergreen_blocks)
    return _build_placement(row, blocks, (len(primary_blocks), len(fallback_blocks)), known)


def _compile_auctioned(rows: PlacementRows, shared: Interner) -> Steps[IndexedPlacement]:
    """Compile an auctioned placement: a candidate needs a bid, and there are no fallbacks."""
    bidders: list[Bidder] = []
    known = _PlacementParts()
    for number, one in enumerate(rows.assignments):
        if number % ROWS_A_STEP == 0:
            yield
        creative = shared.intern(render_ad(one))
        pair = known.add_creative(one, creative)
        if is_candidate(one) and has_bid(one):
            as_banner = shared.intern(encode_creative(one))
            candidate = _build_candidate(one, rows.placement, pair, creative, as_banner, shared)
            bidders.append(build_bidder(candidate, one, rows.placement))
            known.add_limits(one, candidate)
    blocks = yield from build_bid_blocks(bidders)
    return _build_placement(rows.placement, tuple(blocks), (len(blocks), 0), known)


def compile_slot(row: PlacementRow) -> IndexedPlacement:
    """Compile a contextual placement by itself: what fills it comes from elsewhere."""
    return run_steps(compile_placement(PlacementRows(row, []), Interner()))


def compile_creatives(
    campaign_id: CampaignId, rows: Sequence[CreativeRow], shared: Interner
) -> Steps[IndexedPlacement]:
    """Compile the creatives of a campaign as a placement of their own."""
    row = PlacementRow(
        key=rows[0].assignment.placement_key,
        id=PlacementId(campaign_id),
        slug="",
        label="",
        layout_type="",
        max_banners=1,
        is_active=False,
        fallback_placeholder_url=None,
        allow_partial_render=False,
        delivery=Delivery.CONTEXTUAL,
        placement_type=CONTEXTUAL_TYPE,
    )
    candidates: list[Candidate] = []
    creatives: dict[UUID, ContextualCreative] = {}
    known = _PlacementParts()
    for one in rows:
        assignment = one.assignment
        pair = known.add_creative(assignment, shared.intern(render_creative(one)))
        if not is_candidate(assignment):
            continue
        as_banner = shared.intern(encode_creative(assignment))
        candidate = _build_candidate(assignment, row, pair, b"", as_banner, shared)
        known.add_limits(assignment, candidate)
        creatives[assignment.banner_id] = build_creative(
            one, position=len(candidates), landing_domain=find_landing_domain(assignment.cta_url)
        )
        candidates.append(candidate)
    blocks = yield from _build_blocks(candidates)
    placement = _build_placement(row, tuple(blocks), (len(blocks), 0), known)
    return msgspec.structs.replace(placement, creatives_by_banner=creatives)


class _PlacementParts:
    """Creatives, caps and lease terms of a placement that is being compiled."""

    def __init__(self) -> None:
        self.creatives: dict[bytes, bytes] = {}
        self.with_click_id: set[UUID] = set()
        self.caps: dict[int, Caps] = {}
        self.terms: dict[int, LeaseTerms] = {}
        self.is_limited = self.has_frequency = False
        self.turns: dict[bytes, Turn] = {}
        self._tiers: dict[tuple[object, ...], int] = {}

    def add_creative(self, row: AssignmentRow, creative: bytes) -> bytes:
        """Record what is shown, and return its packed ids."""
        pair = pack_ids(row.banner_id, row.campaign_id)
        self.creatives[pair] = creative
        if row.passes_click_id:
            self.with_click_id.add(row.campaign_id)
        return pair

    def add_limits(self, row: AssignmentRow, candidate: Candidate) -> None:
        self.is_limited |= row.caps is not None or row.price.cost > 0
        self.has_frequency |= bool(row.frequency)
        if row.caps is not None:
            self.caps[row.campaign_key] = row.caps
        if candidate.is_leased and row.campaign_key not in self.terms:
            self.terms[row.campaign_key] = build_lease_terms(row)

    def add_turn(self, row: AssignmentRow, rotation: Rotation) -> None:
        """Note with which candidates this one takes turns: those that only weight and priorities put in order."""
        if rotation is not Rotation.ORDERED:
            tier = self._tiers.setdefault(fill_order(row)[:ORDER_OF_TIERS], len(self._tiers))
            self.turns[pack_ids(row.banner_id, row.campaign_id)] = Turn(tier, row.weight)


def _build_placement(
    row: PlacementRow,
    blocks: tuple[Block, ...],
    primary_and_fallback: tuple[int, int],
    known: _PlacementParts,
) -> IndexedPlacement:
    return IndexedPlacement(
        key=row.key,
        id=row.id,
        owner_key=row.owner_key,
        slug=row.slug.encode(),
        is_served=row.is_active and row.delivery is Delivery.DIRECT,
        is_auctioned=row.is_active and row.delivery is Delivery.AUCTION,
        is_contextual=row.is_active and row.delivery is Delivery.CONTEXTUAL,
        site_key=row.site_key,
        width=row.width,
        height=row.height,
        floor=row.floor,
        delivery=row.delivery,
        type=row.placement_type,
        zone=find_zone(row.timezone) or UTC_ZONE,
        # A token has no room for more slots.
        slots_max=min(row.max_banners, SLOT_MAX + 1),
        head=encode_placement_head(row),
        blocks=blocks,
        primary_blocks=primary_and_fallback[0],
        fallback_blocks=primary_and_fallback[1],
        creatives=known.creatives,
        with_click_id=frozenset(known.with_click_id),
        caps=known.caps,
        terms=known.terms,
        is_limited=known.is_limited,
        has_frequency=known.has_frequency,
        scoring=row.scoring,
        site=row.site,
        rotation=row.rotation,
        turns=known.turns,
    )


def is_candidate(row: AssignmentRow) -> bool:
    """Whether an assignment may serve at some time."""
    return row.status is AssignmentStatus.LIVE and row.schedule.status not in NEVER_SHOWN


def fill_order(row: AssignmentRow) -> FillOrder:
    """Sort key: the lowest fills a slot first."""
    priority = 0.0
    if row.is_fallback:
        priority = float("inf") if row.fallback_priority is None else row.fallback_priority
    return (
        row.is_fallback,
        priority,
        row.display_order,
        -row.weight,
        -row.campaign_priority,
        -row.banner_priority,
        row.banner_id.bytes,
        row.campaign_id.bytes,
    )


def _sort_rows(rows: Sequence[AssignmentRow]) -> Steps[list[AssignmentRow]]:
    ranks: list[tuple[FillOrder, int]] = []
    for number, row in enumerate(rows):
        if number % ROWS_A_STEP == 0:
            yield
        ranks.append((fill_order(row), number))
    ranks.sort()
    return [rows[number] for _, number in ranks]


def _build_candidate(  # noqa: PLR0913, PLR0917 - what is encoded already comes with it
    row: AssignmentRow,
    placement: PlacementRow,
    pair: bytes,
    creative: bytes,
    placing: bytes,
    shared: Interner,
) -> Candidate:
    return Candidate(
        pair=pair,
        campaign_key=row.campaign_key,
        banner_key=row.banner_key,
        creative=creative,
        placing=placing,
        timing=shared.intern(timing) if (timing := _build_timing(row)) else None,
        rules=shared.intern(row.rules),
        price=shared.intern(row.price),
        hold=max(HOLD_MIN, row.price.compute_hold(placement.placement_type)),
        is_leased=needs_lease(row),
        frequency=row.frequency,
    )


def needs_lease(row: AssignmentRow) -> bool:
    """Whether offers cost of a budget, or count against a cap."""
    is_capped = row.caps is not None and row.caps.impressions is not None
    return is_capped or (row.is_limited and row.price.cost > 0)


def _build_timing(row: AssignmentRow) -> Timing | None:
    schedule = row.schedule
    is_always_open = (
        schedule.status is ScheduleStatus.EVERGREEN
        and schedule.window_start is None
        and schedule.recurrence_rule is None
    )
    if is_always_open and row.starts_at is None and row.ends_at is None:
        return None
    return Timing(row.starts_at, row.ends_at, EVERGREEN if is_always_open else schedule)


def _build_blocks(candidates: Sequence[Candidate], *, is_untargeted: bool = False) -> Steps[list[Block]]:
    blocks: list[Block] = []
    for start in range(0, len(candidates), BLOCK_CANDIDATES_MAX):
        members = tuple(candidates[start : start + BLOCK_CANDIDATES_MAX])
        rules = () if is_untargeted else [one.rules for one in members]
        targeting = yield from compiling_rules(rules)
        blocks.append(
            Block(
                candidates=members,
                targeting=targeting,
                everyone=(1 << len(members)) - 1,
                timed=tuple(number for number, one in enumerate(members) if one.timing is not None),
            )
        )
    return blocks
