"""What is known of a campaign: where it may be shown, and what happened there recently."""

# pure

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from adloom.budgets.lifetime_counts import LifetimeCounts
from adloom.catalog.campaign.model import Campaign
from adloom.market.report.reach import CampaignReach
from adloom.schedule.schedule import find_zone
from adloom.serving.index.rows import AssignmentRow, Caps, PlacementRow, PlacementRows
from adloom.targeting.context import Context
from adloom.targeting.evaluate import matches_all
from adloom.targeting.rules import Rule, RuleType

WON: Final = "won"
LOST: Final = "lost"
REMOVED: Final = "removed"
# What is counted of an impression; rules about anything else are taken to hold.
COUNTED: Final = frozenset({RuleType.COUNTRY, RuleType.DEVICE, RuleType.HOUR_OF_DAY, RuleType.DAY_OF_WEEK})


class SeenImpressions(msgspec.Struct, frozen=True, kw_only=True):
    """Impressions of one hour on a placement, of visitors from one country on one kind of device."""

    placement_key: int
    hour: datetime
    country: str | None
    device: str | None
    impressions: int
    own_impressions: int
    own_clicks: int


class AuctionTally(msgspec.Struct, frozen=True, kw_only=True):
    """How the last auctions ended that the campaign could have been in."""

    held: int = 0
    won: int = 0
    lost: int = 0
    removed: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])  # By step.
    ecpm: float | None = None  # The campaign's own on average where it lost,
    winning_ecpm: float | None = None  # and the winners'.

    @property
    def absent(self) -> int:
        """Auctions in which it was no candidate; the answer reads it by name."""
        return self.held - self.won - self.lost - sum(self.removed.values())

    def count_removed(self, *steps: str) -> int:
        """Count removals by some steps; `targeting` includes `targeting:country` and the like."""
        return sum(count for step, count in self.removed.items() if {step, step.partition(":")[0]} & {*steps})


class CampaignTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """All that happened since a moment."""

    since: datetime
    seen: Sequence[SeenImpressions] = ()
    auctions: AuctionTally = AuctionTally()
    # Of the campaign itself in contextual slots, which it is not assigned to.
    contextual_impressions: int = 0
    contextual_clicks: int = 0

    @property
    def requests(self) -> int:
        """Impressions of any campaign on the placements, and auctions."""
        return sum(one.impressions for one in self.seen) + self.auctions.held

    @property
    def own_impressions(self) -> int:
        return sum(one.own_impressions for one in self.seen) + self.contextual_impressions

    @property
    def own_clicks(self) -> int:
        return sum(one.own_clicks for one in self.seen) + self.contextual_clicks


class CampaignFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a campaign and its surroundings at a moment."""

    campaign: Campaign
    placements: Sequence[PlacementRows]
    counts: LifetimeCounts
    missing_budget: str | None
    traffic: CampaignTraffic
    now: datetime
    throttle: float = 0.0  # The share of its offers that its pace leaves out.
    multiplier: float = 1.0  # Of its bids, by its strategy.
    creatives: Sequence[AssignmentRow] = ()  # Of contextual slots.
    reach: CampaignReach | None = None  # None if it wants no contextual slots.

    @property
    def caps(self) -> Caps | None:
        rows = [row for row, _ in self.assigned] or self.creatives
        return rows[0].caps if rows else None

    @property
    def assigned(self) -> list[tuple[AssignmentRow, PlacementRow]]:
        return [(row, one.placement) for one in self.placements for row in one.assignments]

    @property
    def zones(self) -> dict[int, str]:
        return {one.placement.key: one.placement.timezone for one in self.placements}


def count_targeted(rules: Sequence[Rule], seen: Sequence[SeenImpressions], zones: Mapping[int, str]) -> int:
    """Count the impressions of visitors whom the rules want, by what is counted of them."""
    judged = [rule for rule in rules if rule.rule_type in COUNTED]
    return sum(
        one.impressions
        for one in seen
        if matches_all(judged, _build_context(one, zones.get(one.placement_key, "UTC")))
    )


def _build_context(seen: SeenImpressions, zone: str) -> Context:
    local = seen.hour.astimezone(find_zone(zone) or UTC)
    return Context(
        device=seen.device,
        country=seen.country,
        language=None,
        is_logged_in=False,
        is_new_visitor=False,
        referrer_domain=None,
        segment=None,
        hour=local.hour,
        day=local.isoweekday() % 7,
    )
