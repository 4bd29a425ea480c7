"""Which candidates may be offered now: open by schedule and not excluded, as one bitmap per block."""

# pure

from datetime import datetime

from adloom.serving.eligibility.exclusions import ExcludedCampaigns, Ranks, build_excluded_masks
from adloom.serving.eligibility.schedule_mask import ScheduleMask, advance_schedule_mask, build_schedule_mask
from adloom.serving.index.index import HasBlocks
from adloom.serving.index.steps import run_steps
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX


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
        "available",
        "candidates",
        "change_count",
        "excluded_version",
        "ranks",
        "schedule_mask",
        "since",
        "until",
    )

    def __init__(
        self,
        candidates: HasBlocks,
        schedule_mask: ScheduleMask,
        ranks: Ranks,
        excluded: ExcludedCampaigns,
        change_counter: ChangeCounter,
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
