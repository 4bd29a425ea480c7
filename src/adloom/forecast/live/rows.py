"""The running installation as a simulation reads it, and the market that it makes."""

# pure

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from adloom.auction.bid import BidType
from adloom.bidding.window import BidStrategy
from adloom.budgets.config.configuration import (
    AdvertiserRow,
    CampaignRow,
    build_advertiser_config,
    build_campaign_config,
)
from adloom.budgets.lifetime_counts import NO_COUNTS, LifetimeCounts
from adloom.budgets.messages import ConfigureCampaign
from adloom.core.money import Micros
from adloom.forecast.changes import BY_PRICE
from adloom.forecast.live.page_traffic import (
    NO_CONTEXTUAL,
    ContextualRows,
    Kind,
    SlotHour,
    describe_kind,
    find_seen_share,
    share_kinds,
)
from adloom.forecast.market import (
    HOURS_A_WEEK,
    NamedCampaign,
    SimulatedMarket,
    TrafficCell,
    VisitorFields,
    VisitorResponse,
)
from adloom.schedule.traffic_shape import HOURS
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.rows import AssignmentRow, AssignmentStatus, Delivery, PlacementRow, PlacementRows
from adloom.targeting.rules import Rule, RuleType

LOOKED_BACK: Final = timedelta(hours=HOURS_A_WEEK)
# What is counted of an impression; rules about anything else are taken to hold.
COUNTED: Final = frozenset({RuleType.COUNTRY, RuleType.DEVICE, RuleType.HOUR_OF_DAY, RuleType.DAY_OF_WEEK})
# A click rate of few impressions is drawn towards the installation's, as if that many more had been seen.
PRIOR_IMPRESSIONS: Final = 1_000
PRIOR_CLICK_RATE: Final = 0.002
PRIOR_CLICKS: Final = 50
NOT_STARTED: Final = frozenset(
    {AssignmentStatus.CAMPAIGN_DRAFT, AssignmentStatus.CAMPAIGN_PAUSED, AssignmentStatus.CAMPAIGN_UNDATED}
)
_FIRST_HOUR: Final = datetime(1970, 1, 5, tzinfo=UTC)  # A Monday.
_ONE_HOUR: Final = timedelta(hours=1)
# Auctions of pages cost more than the requests between them; what rankers learn of a category changes slowly.
PAGE_AUCTION_SECONDS: Final = 21_600


_CellKey = tuple[
    bytes | None, str | None, VisitorFields, str | None
]  # Slug, or placement type; visitor; page.


class SeenHour(msgspec.Struct, frozen=True, kw_only=True):
    """Valid impressions of one hour on a placement, of visitors of one kind; `most` of one banner."""

    placement_key: int
    hour: datetime
    country: str | None
    device: str | None
    impressions: int
    most: int


class UnsoldHour(msgspec.Struct, frozen=True, kw_only=True):
    """Auctions of one hour without a winner, on a placement if one was named."""

    placement_type: str
    placement_key: int | None
    hour: datetime
    country: str | None
    device: str | None
    auctions: int


class CampaignResults(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign had on a placement in the last seven days."""

    campaign_key: int
    placement_key: int
    impressions: int
    clicks: int
    conversions: int


class LiveRows(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of an installation, at one version of its catalog."""

    now: datetime
    placements: Sequence[PlacementRows]
    campaigns: Sequence[CampaignRow]
    names: Mapping[int, str]
    spent: Mapping[int, int]  # By campaign, of its total budget, in micros.
    counts: Mapping[int, LifetimeCounts]
    seen: Sequence[SeenHour]
    unsold: Sequence[UnsoldHour]
    results: Sequence[CampaignResults]
    shares: Mapping[int, float] = {}  # By campaign, how much of its delivery these placements are; else all.
    click_model: bytes | None = None  # What the policy `learned` knows.
    contextual: ContextualRows = NO_CONTEXTUAL
    wants_pages: bool = False  # There are contextual slots, or the campaign that is asked about wants some.


def keep_serving(rows: PlacementRows, own: UUID | None) -> PlacementRows:
    """Keep what serves, or would with another bid; the campaign that is asked about serves if it only has to be started."""
    kept = [start_assignment(row, own) for row in rows.assignments]
    return PlacementRows(rows.placement, [row for row in kept if row.status in BY_PRICE])


def keep_showing(rows: Iterable[CreativeRow], own: UUID | None) -> list[CreativeRow]:
    """Keep what is shown in contextual slots, or would be with another bid."""
    kept = [msgspec.structs.replace(row, assignment=start_assignment(row.assignment, own)) for row in rows]
    return [row for row in kept if row.assignment.status in BY_PRICE]


def start_assignment(row: AssignmentRow, own: UUID | None) -> AssignmentRow:
    """Return an assignment of the campaign that is asked about as if it had been started."""
    if row.campaign_id != own or row.status not in NOT_STARTED:
        return row
    # A draft that bids by click, or not at all, has no bid for contextual slots.
    is_contextual = row.placement_key < 0
    has_bid = not is_contextual or (row.bid_type is BidType.CPM and bool(row.bid))
    return msgspec.structs.replace(row, status=AssignmentStatus.LIVE if has_bid else AssignmentStatus.NO_BID)


def start_campaign(row: CampaignRow) -> CampaignRow:
    """Return a campaign as if it ran, if its status allows that."""
    is_final = row.status in {"ended", "cancelled"}
    return row if is_final else msgspec.structs.replace(row, status="active")


def build_live_market(rows: LiveRows) -> SimulatedMarket:
    """Build the market: from the next midnight on, with the traffic of the last week."""
    placements = [one.placement for one in rows.placements]
    assignments = [
        _keep_counted(row)
        for one in rows.placements
        for row in one.assignments
        if one.placement.delivery is not Delivery.CONTEXTUAL
    ]
    contextual = rows.contextual
    creatives = [
        msgspec.structs.replace(row, assignment=_keep_counted(row.assignment)) for row in contextual.creatives
    ]
    keys: dict[UUID, AssignmentRow] = {row.campaign_id: row for row in list_assignments(rows)}
    campaigns = [_build_campaign(row, keys[row.id], rows) for row in rows.campaigns if row.id in keys]
    payers = {row.advertiser.id: row.advertiser for row in rows.campaigns if row.advertiser is not None}
    cells, is_short = build_cells(rows, placements)
    return SimulatedMarket(
        starts_at=(rows.now + timedelta(days=1))
        .astimezone(UTC)
        .replace(hour=0, minute=0, second=0, microsecond=0),
        placements=placements,
        assignments=assignments,
        sites=contextual.sites,
        pages=list({one.page.url: one.page for one in contextual.pages}.values()),
        creatives=creatives,
        approvals=contextual.approvals,
        page_auction_seconds=PAGE_AUCTION_SECONDS,
        campaigns=campaigns,
        advertisers=[build_advertiser_config(one, version=1) for one in _scale_payers(payers.values(), rows)],
        cells=cells,
        response=_learn_response(rows.results),
        click_model=rows.click_model,
        notes=_list_notes(rows, is_short=is_short),
    )


def list_assignments(rows: LiveRows) -> list[AssignmentRow]:
    """Return all that campaigns show, wherever it is; of one campaign at least one."""
    direct = [row for one in rows.placements for row in one.assignments]
    return [*(row.assignment for row in rows.contextual.creatives), *direct]


def build_cells(rows: LiveRows, placements: Sequence[PlacementRow]) -> tuple[list[TrafficCell], bool]:
    """Build the week of requests; hours before the first known traffic are filled up. Returns whether there were any."""
    by_key = {one.key: one for one in placements}
    hours: dict[_CellKey, dict[datetime, float]] = {}

    def add(key: _CellKey, hour: datetime, requests: float) -> None:
        of_cell = hours.setdefault(key, {})
        of_cell[hour] = of_cell.get(hour, 0.0) + requests

    for one in rows.seen:
        placement = by_key.get(one.placement_key)
        if placement is not None and placement.delivery is not Delivery.CONTEXTUAL:
            # One request may show several banners, and each of them once.
            requests = max(one.most, -(-one.impressions // max(1, placement.max_banners)))
            visitor = describe_kind(one.country, one.device)
            add((placement.slug.encode(), None, visitor, None), one.hour, requests)
    for unsold in rows.unsold:
        placement = None if unsold.placement_key is None else by_key.get(unsold.placement_key)
        slug = None if placement is None else placement.slug.encode()
        kind = unsold.placement_type if placement is None else None
        visitor = describe_kind(unsold.country, unsold.device)
        add((slug, kind, visitor, None), unsold.hour, unsold.auctions)
    for key, hour, requests in iter_page_requests(rows, by_key):
        add(key, hour, requests)
    this_hour = rows.now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first = min((hour for of_cell in hours.values() for hour in of_cell), default=this_hour)
    known = [first + number * _ONE_HOUR for number in range((this_hour - first) // _ONE_HOUR)]
    cells = [
        TrafficCell(
            slug=slug, placement_type=kind, visitor=visitor, page=page, hours=_fill_week(of_cell, known)
        )
        for (slug, kind, visitor, page), of_cell in sorted(hours.items(), key=repr)
    ]
    return cells, len(known) < HOURS_A_WEEK


def iter_page_requests(
    rows: LiveRows, placements: Mapping[int, PlacementRow]
) -> Iterator[tuple[_CellKey, datetime, float]]:
    """Yield the requests of contextual slots by hour: of each page, by visitors of each kind that was seen there."""
    seen: dict[int, dict[Kind, int]] = {}
    for one in rows.seen:
        kinds = seen.setdefault(one.placement_key, {})
        kinds[one.country, one.device] = kinds.get((one.country, one.device), 0) + one.impressions
    filled: dict[int, int] = {}
    hours: dict[int, list[SlotHour]] = {}
    for hour in rows.contextual.hours:
        filled[hour.placement_key] = filled.get(hour.placement_key, 0) + hour.filled
        hours.setdefault(hour.placement_key, []).append(hour)
    for share in rows.contextual.pages:
        key = share.placement_key
        placement = placements.get(key)
        if placement is None:
            continue
        kinds = seen.get(key, {})
        part = share.share * find_seen_share(filled.get(key, 0), sum(kinds.values()))
        for visitor, of_kind in share_kinds(kinds):
            cell = placement.slug.encode(), None, visitor, share.page.url
            for hour in hours.get(key, ()):
                yield cell, hour.hour, hour.requests * part * of_kind


def _fill_week(requests: Mapping[datetime, float], known: Sequence[datetime]) -> list[float]:
    """Return the hours of a week; one that is not known is as the same hour of other days, or as an average one."""
    week: list[list[float]] = [[] for _ in range(HOURS_A_WEEK)]
    for hour in known:
        week[(hour - _FIRST_HOUR) // _ONE_HOUR % HOURS_A_WEEK].append(requests.get(hour, 0.0))
    by_hour = [[value for hour in week[number::HOURS] for value in hour] for number in range(HOURS)]
    usual = _compute_mean([value for hour in week for value in hour])
    return [
        _compute_mean(values)
        if values
        else _compute_mean(by_hour[number % HOURS])
        if by_hour[number % HOURS]
        else usual
        for number, values in enumerate(week)
    ]


def _compute_mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _keep_counted(row: AssignmentRow) -> AssignmentRow:
    return msgspec.structs.replace(row, rules=keep_counted_rules(row.rules), frequency=())


def keep_counted_rules(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Leave out rules about what is not counted of visitors: they are taken to hold."""
    return tuple(rule for rule in rules if rule.rule_type in COUNTED)


def _build_campaign(row: CampaignRow, assignment: AssignmentRow, rows: LiveRows) -> NamedCampaign:
    key = assignment.campaign_key
    config = build_campaign_config(row, version=1, hold_seconds=0, now=rows.now)
    if config.total_budget is not None:
        left = Micros(max(0, config.total_budget - rows.spent.get(key, 0)))
        config = msgspec.structs.replace(config, total_budget=left)
    # A campaign that bids in full has nothing to ask.
    has_strategy = config.has_bid and config.bid_strategy is not BidStrategy.FIXED
    config = msgspec.structs.replace(config, has_bid=has_strategy)
    share = rows.shares.get(key, 1.0)
    return NamedCampaign(
        key=key,
        name=rows.names.get(key, str(row.id)),
        config=_take_share(config, share),
        is_per_click=assignment.bid_type is BidType.CPC,
        counts=rows.counts.get(key, NO_COUNTS),
    )


def _take_share(config: ConfigureCampaign, share: float) -> ConfigureCampaign:
    """Leave the part of a budget that a campaign spends on other placements out."""
    if share >= 1:
        return config
    return msgspec.structs.replace(
        config,
        daily_budget=None if config.daily_budget is None else Micros(int(config.daily_budget * share)),
        total_budget=None if config.total_budget is None else Micros(int(config.total_budget * share)),
    )


def _scale_payers(payers: Collection[AdvertiserRow], rows: LiveRows) -> list[AdvertiserRow]:
    """Return the advertisers; one whose campaigns run elsewhere too has the largest share of them here."""
    shares: dict[object, float] = {}
    keys: dict[UUID, int] = {row.campaign_id: row.campaign_key for row in list_assignments(rows)}
    for row in rows.campaigns:
        if row.advertiser is not None and row.id in keys:
            share = rows.shares.get(keys[row.id], 1.0)
            shares[row.advertiser.id] = max(shares.get(row.advertiser.id, 0.0), share)
    return [
        payer
        if payer.daily_budget_paisa is None
        else msgspec.structs.replace(
            payer, daily_budget_paisa=int(payer.daily_budget_paisa * shares.get(payer.id, 1.0))
        )
        for payer in payers
    ]


def _learn_response(results: Sequence[CampaignResults]) -> VisitorResponse:
    """Learn click and conversion rates; those of few impressions are near the installation's."""
    shown = sum(one.impressions for one in results)
    clicked = sum(one.clicks for one in results)
    usual = (clicked + PRIOR_IMPRESSIONS * PRIOR_CLICK_RATE) / (shown + PRIOR_IMPRESSIONS)
    converted = sum(one.conversions for one in results)
    usual_conversions = converted / (clicked + PRIOR_CLICKS)
    of_campaign: dict[int, list[int]] = {}
    for one in results:
        sums = of_campaign.setdefault(one.campaign_key, [0, 0, 0])
        for place, number in enumerate((one.impressions, one.clicks, one.conversions)):
            sums[place] += number
    rates = {key: _pull(clicks, shown, usual) for key, (shown, clicks, _) in of_campaign.items()}
    return VisitorResponse(
        click_rate=usual,
        of_campaign=rates,
        on_placement={
            (one.campaign_key, one.placement_key): _pull(one.clicks, one.impressions, rates[one.campaign_key])
            for one in results
        },
        conversion_rates={
            key: min(1.0, (conversions + PRIOR_CLICKS * usual_conversions) / (clicks + PRIOR_CLICKS))
            for key, (_, clicks, conversions) in of_campaign.items()
        },
    )


def _pull(clicks: int, impressions: int, usual: float) -> float:
    return min(1.0, (clicks + PRIOR_IMPRESSIONS * usual) / (impressions + PRIOR_IMPRESSIONS))


def _list_notes(rows: LiveRows, *, is_short: bool) -> list[str]:
    """Return what this copy leaves out."""
    live = [row for row in list_assignments(rows) if row.status is AssignmentStatus.LIVE]
    ignored = sorted({rule.rule_type for row in live for rule in row.rules} - COUNTED)
    notes: list[str] = []
    if is_short:
        notes.append(
            "Traffic is known for less than seven days: hours that are missing are as those of other days."
        )
    if ignored:
        notes.append(f"Rules about {', '.join(ignored)} are taken to hold: visitors are not counted by that.")
    if any(row.frequency for row in live):
        notes.append("Frequency caps are not simulated: it is not kept who came when.")
    if rows.contextual.pages:
        notes.append("In contextual slots, pages of a site with the same categories are taken for one.")
    elif rows.wants_pages:
        notes.append(
            "Contextual slots are not simulated: nobody has asked for an ad on such a page in the last seven days."
        )
    return notes
