"""Reasons not to serve that are not in the catalog, each a named set of campaigns.

Excluded campaigns are marked and not removed: they come back when their source says so. Caps replace their
whole set; budgets send changes, since thousands of campaigns change every second. The ranks of a campaign's
candidates are known, so no other candidate is looked at.
"""

# pure

from collections.abc import Generator, Iterable, Mapping

import msgspec

from adloom.serving.index.index import Candidate, HasBlocks
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


NO_EXCLUSIONS = Exclusions()


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
