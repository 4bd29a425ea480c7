"""Which candidates may be offered now: open by schedule and not excluded, as one bitmap per block.

Excluded campaigns are marked and not removed: they come back when their source says so. So are campaigns whose bids
are lowered: auctions look at those one by one. Caps replace their
whole set; budgets send changes, since thousands of campaigns change every second. The ranks of a campaign's
candidates are known, so no other candidate is looked at.
"""

# pure

from collections.abc import Generator, Iterable, Mapping
from datetime import datetime

import msgspec

from adloom.serving.eligibility.schedule_mask import ScheduleMask, advance_schedule_mask, build_schedule_mask
from adloom.serving.index.index import Candidate, HasBlocks
from adloom.serving.index.steps import run_steps
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX

Keys = frozenset[int]
# By campaign, the ranks of its candidates in fill order: block number counts block size plus position.
Ranks = Mapping[int, tuple[int, ...]]

CANDIDATES_A_STEP = 64


class Exclusions(msgspec.Struct, frozen=True, kw_only=True):
    """The campaigns that may not serve, by reason."""

    campaigns: Mapping[str, Keys] = {}

    def __bool__(self) -> bool:
        return any(self.campaigns.values())


class ExcludedCampaigns:
    """The campaigns that may not serve, by source; each source changes only its own part."""

    def __init__(self) -> None:
        self._reasons: dict[str, dict[int, str]] = {}  # By source and campaign, the reason.
        self._source_counts: dict[int, int] = {}  # By campaign, how many sources exclude it.
        self.changes = 0  # How often a campaign was excluded, or no longer.

    def __contains__(self, campaign_key: object) -> bool:
        return campaign_key in self._source_counts

    def __len__(self) -> int:
        return len(self._source_counts)

    def __iter__(self) -> Generator[int]:
        yield from self._source_counts

    def find_reason(self, campaign_key: int, sources: Iterable[str]) -> str | None:
        """Return why a campaign is excluded by the first of some sources that excludes it, or None."""
        for source in sources:
            reason = self._reasons.get(source, {}).get(campaign_key)
            if reason is not None:
                return reason
        return None

    def replace(self, source: str, exclusions: Exclusions) -> list[int]:
        """Replace all that a source says, and return the campaigns whose state flipped."""
        reasons: dict[int, str | None] = {}
        for reason, keys in exclusions.campaigns.items():
            for key in keys:
                reasons.setdefault(key, reason)  # Of several reasons the first counts.
        changes: dict[int, str | None] = dict.fromkeys(self._reasons.get(source, {}).keys() - reasons.keys())
        return self.change(source, changes | reasons)

    def change(self, source: str, changes: Mapping[int, str | None]) -> list[int]:
        """Apply a source's changes, None for no reason; return the campaigns whose state flipped."""
        reasons = self._reasons.setdefault(source, {})
        counts = self._source_counts
        flipped: list[int] = []
        for key, reason in changes.items():
            if reason is None:
                if reasons.pop(key, None) is None:
                    continue
                left = counts[key] - 1
                if left:
                    counts[key] = left
                    continue
                del counts[key]
                flipped.append(key)
            elif key in reasons:
                reasons[key] = reason
            else:
                reasons[key] = reason
                counts[key] = counts.get(key, 0) + 1
                if counts[key] == 1:
                    flipped.append(key)
        self.changes += len(flipped)
        return flipped


class LoweredBids:
    """Campaigns whose bids a multiplier lowers; each multiplier is below 1."""

    def __init__(self) -> None:
        self.multipliers: dict[int, float] = {}
        self.changes = 0

    def change(self, multipliers: Mapping[int, float]) -> list[int]:
        """Apply changes, 1 for a full bid; return the campaigns whose multiplier is another now."""
        changed: list[int] = []
        for key, multiplier in multipliers.items():
            if self.multipliers.get(key, 1.0) == multiplier:
                continue
            if multiplier < 1:
                self.multipliers[key] = multiplier
            else:
                self.multipliers.pop(key, None)
            changed.append(key)
        self.changes += len(changed)
        return changed


def rank_campaigns(placement: HasBlocks) -> Generator[None, None, Ranks]:
    """Note the ranks of each campaign's candidates, in steps."""
    ranks: dict[int, tuple[int, ...]] = {}
    for number, block in enumerate(placement.blocks):
        for position, one in enumerate(block.candidates):
            if position % CANDIDATES_A_STEP == 0:
                yield
            rank = number * BLOCK_CANDIDATES_MAX + position
            ranks[one.campaign_key] = (*ranks.get(one.campaign_key, ()), rank)
    return ranks


def build_excluded_masks(placement: HasBlocks, ranks: Ranks, campaigns: Iterable[int]) -> list[int]:
    """Build the bitmaps of some campaigns' candidates, one per block."""
    positions: list[list[int]] = [[] for _ in placement.blocks]
    for key in campaigns:
        for rank in ranks.get(key, ()):
            number, position = divmod(rank, BLOCK_CANDIDATES_MAX)
            positions[number].append(position)
    return [_build_mask(of_block) for of_block in positions]


def remove_excluded(masks: tuple[int, ...], placement: HasBlocks, exclusions: Exclusions) -> tuple[int, ...]:
    """Remove excluded campaigns from a placement's bitmaps by looking at every candidate."""
    if not exclusions:
        return masks
    campaigns = frozenset(key for keys in exclusions.campaigns.values() for key in keys)
    return tuple(
        mask & ~_build_mask_of(block.candidates, campaigns)
        for mask, block in zip(masks, placement.blocks, strict=True)
    )


def _build_mask_of(candidates: tuple[Candidate, ...], campaigns: Keys) -> int:
    return _build_mask([position for position, one in enumerate(candidates) if one.campaign_key in campaigns])


def _build_mask(positions: list[int]) -> int:
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


class ChangeCounter:
    """Counts the changes of all eligible sets that share it."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class EligibleSet:
    """The candidates that may be offered now; `available` is replaced, never changed in place."""

    __slots__ = (
        "_change_counter",
        "_excluded",
        "_lowered_bids",
        "available",
        "candidates",
        "change_count",
        "excluded_version",
        "lowered",
        "lowered_version",
        "multipliers",
        "ranks",
        "schedule_mask",
        "since",
        "until",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - what it is made from
        self,
        candidates: HasBlocks,
        schedule_mask: ScheduleMask,
        ranks: Ranks,
        excluded: ExcludedCampaigns,
        change_counter: ChangeCounter,
        lowered_bids: LoweredBids | None = None,
    ) -> None:
        self._change_counter = change_counter
        self.change_count = 0  # Changes of this set.
        self.candidates = candidates
        self.ranks = ranks
        self.available: list[int] = []
        self._excluded: list[int] = []
        self.schedule_mask = schedule_mask
        self.since = schedule_mask.since
        self.until = schedule_mask.until
        self.set_excluded(excluded)
        self._lowered_bids = LoweredBids() if lowered_bids is None else lowered_bids
        self.multipliers = self._lowered_bids.multipliers
        self.lowered: list[int] = []  # The bids of campaigns that bid less, by block.
        self.lowered_version = -1
        self.update_lowered()

    def advance_to(self, now: datetime) -> None:
        """Apply the schedule at a moment."""
        if now < self.since:  # The machine's clock went back.
            self.schedule_mask = run_steps(build_schedule_mask(self.candidates, now=now))
        else:
            self.schedule_mask = advance_schedule_mask(self.schedule_mask, self.candidates, now=now)
        self._count_change()
        self.since = self.schedule_mask.since
        self.until = self.schedule_mask.until
        self._update_available()

    def set_excluded(self, excluded: ExcludedCampaigns) -> None:
        """Remove the excluded campaigns, and no others."""
        # Look up the fewer among the more.
        among = excluded if len(excluded) < len(self.ranks) else filter(excluded.__contains__, self.ranks)
        self._excluded = build_excluded_masks(self.candidates, self.ranks, among)
        self.excluded_version = excluded.changes
        self._update_available()

    def update_lowered(self) -> None:
        """Note which bids are lowered, if that has changed."""
        if self.lowered_version == self._lowered_bids.changes:
            return
        keys = self.multipliers if len(self.multipliers) < len(self.ranks) else self.ranks
        lowered = [key for key in keys if key in self.multipliers]
        self.lowered = build_excluded_masks(self.candidates, self.ranks, lowered)
        self.lowered_version = self._lowered_bids.changes

    def mark_lowered(self, campaign_keys: Iterable[int]) -> None:
        """Note that the multipliers of some campaigns are others now."""
        is_changed = False
        for key in campaign_keys:
            for rank in self.ranks.get(key, ()):
                number, bit = rank // BLOCK_CANDIDATES_MAX, 1 << rank % BLOCK_CANDIDATES_MAX
                lowered = self.lowered[number]
                self.lowered[number] = lowered | bit if key in self.multipliers else lowered & ~bit
                is_changed = True
        if is_changed:
            self._count_change()
        self.lowered_version = self._lowered_bids.changes

    def mark(self, campaign_key: int, *, is_out: bool) -> None:
        """Remove a campaign, or put it back."""
        ranks = self.ranks.get(campaign_key)
        if ranks is None:
            return
        masks, excluded = self.schedule_mask.masks, self._excluded
        # A decision may still need the list that it was made from.
        available = self.available.copy()
        is_changed = False
        for rank in ranks:
            number, position = rank // BLOCK_CANDIDATES_MAX, rank % BLOCK_CANDIDATES_MAX
            bit = 1 << position
            if is_out:
                excluded[number] |= bit
                is_flipped = available[number] & bit
            else:
                excluded[number] &= ~bit
                is_flipped = masks[number] & ~available[number] & bit
            if is_flipped:
                available[number] ^= bit
                is_changed = True
        if is_changed:
            self.available = available
            self._count_change()
            self._on_campaign_changed(campaign_key, ranks[0], is_out=is_out)

    def _count_change(self) -> None:
        self.change_count += 1
        self._change_counter.count += 1

    def _update_available(self) -> None:
        available = [
            mask & ~excluded for mask, excluded in zip(self.schedule_mask.masks, self._excluded, strict=True)
        ]
        if available != self.available:
            self.available = available
            self._count_change()
            self._on_all_changed()

    def _on_campaign_changed(self, campaign_key: int, first_rank: int, *, is_out: bool) -> None:
        """Override to react when candidates of a campaign came or went, the first of them at a rank."""

    def _on_all_changed(self) -> None:
        """Override to react when any candidate may have come or gone."""
