"""Caps of campaigns: how many impressions and clicks they may have, offers that are still out included.

An offer counts against the impression cap from the moment in which it is made until it is reported,
or until its token is too old to be billed. Each process knows its own offers, and all processes know
what was counted, so several of them can together be over a cap by what the others have out.
"""

# pure

from collections import deque
from collections.abc import Mapping
from typing import Final

import msgspec

from adloom.events.ingest.token import TOKEN_LIFETIME
from adloom.serving.index.rows import Caps

IMPRESSION_CAP: Final = "impression_cap"
CLICK_CAP: Final = "click_cap"
RESERVED_SECONDS: Final = int(TOKEN_LIFETIME.total_seconds())


class LifetimeCounts(msgspec.Struct, frozen=True):
    """What a campaign has had in its life."""

    impressions: int = 0
    clicks: int = 0

    def plus(self, other: "LifetimeCounts") -> "LifetimeCounts":
        """Add up."""
        return LifetimeCounts(self.impressions + other.impressions, self.clicks + other.clicks)


NO_COUNTS: Final = LifetimeCounts()


def find_reached_cap(caps: Caps, counts: LifetimeCounts) -> str | None:
    """Name the cap that a campaign has reached, or None."""
    if caps.impressions is not None and counts.impressions >= caps.impressions:
        return IMPRESSION_CAP
    if caps.clicks is not None and counts.clicks >= caps.clicks:
        return CLICK_CAP
    return None


class CapTracker:
    """What campaigns with caps have had, and what this process has out for them."""

    def __init__(self) -> None:
        self._caps: Mapping[int, Caps] = {}
        self._counts: Mapping[int, LifetimeCounts] = {}
        self._held: dict[int, deque[int]] = {}  # By campaign, the seconds in which its offers were made.
        self.changes: dict[int, str | None] = {}  # Who has reached which cap; None is who may be shown again.

    def update(self, caps: Mapping[int, Caps], counts: Mapping[int, LifetimeCounts], *, second: int) -> None:
        """Take the newest caps and counts; what was counted since is no longer out."""
        for campaign_key, held in self._held.items():
            before, now = (known.get(campaign_key, NO_COUNTS) for known in (self._counts, counts))
            for _ in range(min(len(held), now.impressions - before.impressions)):
                held.popleft()
            while held and held[0] <= second - RESERVED_SECONDS:
                held.popleft()
        self._held = {key: held for key, held in self._held.items() if held and key in caps}
        self._caps = caps
        self._counts = counts

    def reserve(self, campaign_key: int, *, second: int) -> bool:
        """Take one offer out, or tell that there is none left."""
        cap = self._caps.get(campaign_key)
        if cap is None or cap.impressions is None:
            return True  # Just appeared, or only its clicks are capped.
        held = self._held.get(campaign_key)
        if held is None:
            held = self._held[campaign_key] = deque()
        counts = self._counts.get(campaign_key)
        left = cap.impressions - len(held) - (counts.impressions if counts is not None else 0)
        if left > 0:
            held.append(second)
        if left <= 1:
            self.changes[campaign_key] = IMPRESSION_CAP
        return left > 0

    def release(self, campaign_key: int) -> None:
        """Put an offer back that was taken just now, and is not made after all."""
        held = self._held.get(campaign_key)
        if held:
            held.pop()
            self.changes[campaign_key] = self._find_reached_cap(campaign_key)

    def take_changes(self) -> dict[int, str | None]:
        """Take the changes since this, or `excluded`, was last asked."""
        changes, self.changes = self.changes, {}
        return changes

    def find_reached(self) -> dict[str, frozenset[int]]:
        """Tell who has reached a cap, by its name."""
        self.changes = {}
        reached: dict[str, set[int]] = {IMPRESSION_CAP: set(), CLICK_CAP: set()}
        for campaign_key in self._caps:
            name = self._find_reached_cap(campaign_key)
            if name is not None:
                reached[name].add(campaign_key)
        return {name: frozenset(keys) for name, keys in reached.items()}

    def _find_reached_cap(self, campaign_key: int) -> str | None:
        clicks = self._counts.get(campaign_key, NO_COUNTS).clicks
        return find_reached_cap(
            self._caps[campaign_key], LifetimeCounts(self._impressions(campaign_key), clicks)
        )

    def _impressions(self, campaign_key: int) -> int:
        held = self._held.get(campaign_key)
        counted = self._counts.get(campaign_key, NO_COUNTS).impressions
        return counted + (len(held) if held else 0)
