"""Reasons not to serve that do not stand in the catalog, each a named set of campaigns.

What is excluded is marked and not removed: it comes back by itself when whoever excludes it says so.
Caps say anew who has reached one; budgets say who has changed, since thousands of campaigns do every
second. So it is known where each campaign stands in a placement, and nobody else is looked at.
"""

# pure

from collections.abc import Generator, Iterable, Mapping

import msgspec

from adloom.serving.index.index import Candidate, HasBlocks
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX

Keys = frozenset[int]
# By campaign, where its candidates stand, the first to fill a slot first: its block times the block size, plus its position.
Ranks = Mapping[int, tuple[int, ...]]

CANDIDATES_A_STEP = 64


class Exclusions(msgspec.Struct, frozen=True, kw_only=True):
    """Who may not serve, by the name of the reason."""

    campaigns: Mapping[str, Keys] = {}

    def __bool__(self) -> bool:
        """Tell whether anybody is excluded."""
        return any(self.campaigns.values())


NO_EXCLUSIONS = Exclusions()


class ExcludedCampaigns:
    """Who may not serve, as several know it who each change only what they said themselves."""

    def __init__(self) -> None:
        self._said: dict[str, dict[int, str]] = {}  # By who says so, the reason of each campaign.
        self._times: dict[int, int] = {}  # By campaign, how many say so.
        self.changes = 0  # How often somebody was excluded, or no longer.

    def __contains__(self, campaign_key: object) -> bool:
        """Tell whether anybody excludes a campaign."""
        return campaign_key in self._times

    def __len__(self) -> int:
        """Count the campaigns that are excluded."""
        return len(self._times)

    def __iter__(self) -> Generator[int]:
        """List the campaigns that are excluded."""
        yield from self._times

    def by(self, source: str) -> dict[str, Keys]:
        """Tell whom one of those who exclude has excluded, by its reasons."""
        found: dict[str, set[int]] = {}
        for campaign_key, reason in self._said.get(source, {}).items():
            found.setdefault(reason, set()).add(campaign_key)
        return {reason: frozenset(keys) for reason, keys in found.items()}

    def find_reason(self, campaign_key: int, sources: Iterable[str]) -> str | None:
        """Tell why a campaign is excluded, as the first of some sources says that knows; None where it is not."""
        for source in sources:
            reason = self._said.get(source, {}).get(campaign_key)
            if reason is not None:
                return reason
        return None

    def replace(self, source: str, exclusions: Exclusions) -> list[int]:
        """Take all that somebody says, and tell for whom the answer is another now."""
        said: dict[int, str | None] = {}
        for reason, keys in exclusions.campaigns.items():
            for key in keys:
                said.setdefault(key, reason)  # Of several reasons the first counts.
        changes: dict[int, str | None] = dict.fromkeys(self._said.get(source, {}).keys() - said.keys())
        return self.change(source, changes | said)

    def change(self, source: str, changes: Mapping[int, str | None]) -> list[int]:
        """Take what somebody says anew of some campaigns, None is nothing against them; tell whose answer flipped."""
        said = self._said.setdefault(source, {})
        times = self._times
        flipped: list[int] = []
        for key, reason in changes.items():
            if reason is None:
                if said.pop(key, None) is None:
                    continue
                left = times[key] - 1
                if left:
                    times[key] = left
                    continue
                del times[key]
                flipped.append(key)
            elif key in said:
                said[key] = reason
            else:
                said[key] = reason
                times[key] = times.get(key, 0) + 1
                if times[key] == 1:
                    flipped.append(key)
        self.changes += len(flipped)
        return flipped


def rank_campaigns(placement: HasBlocks) -> Generator[None, None, Ranks]:
    """Note where each campaign's candidates stand, with pauses."""
    ranks: dict[int, tuple[int, ...]] = {}
    for number, block in enumerate(placement.blocks):
        for position, one in enumerate(block.candidates):
            if position % CANDIDATES_A_STEP == 0:
                yield
            rank = number * BLOCK_CANDIDATES_MAX + position
            ranks[one.campaign_key] = (*ranks.get(one.campaign_key, ()), rank)
    return ranks


def build_excluded_masks(placement: HasBlocks, ranks: Ranks, campaigns: Iterable[int]) -> list[int]:
    """Make the bitmaps of some campaigns' candidates, one for each block."""
    positions: list[list[int]] = [[] for _ in placement.blocks]
    for key in campaigns:
        for rank in ranks.get(key, ()):
            number, position = divmod(rank, BLOCK_CANDIDATES_MAX)
            positions[number].append(position)
    return [_mask(of_block) for of_block in positions]


def remove_excluded(masks: tuple[int, ...], placement: HasBlocks, exclusions: Exclusions) -> tuple[int, ...]:
    """Take those who are excluded out of a placement's bitmaps, by looking at every candidate."""
    if not exclusions:
        return masks
    campaigns = frozenset(key for keys in exclusions.campaigns.values() for key in keys)
    return tuple(
        mask & ~_excluded(block.candidates, campaigns)
        for mask, block in zip(masks, placement.blocks, strict=True)
    )


def _excluded(candidates: tuple[Candidate, ...], campaigns: Keys) -> int:
    return _mask([position for position, one in enumerate(candidates) if one.campaign_key in campaigns])


def _mask(positions: list[int]) -> int:
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask
