"""Lifetime caps of campaigns on impressions and clicks, including offers that are still out.

An offer counts against the impression cap from when it is made until it is reported, or until its token is
too old to be billed. Each process knows its own offers, and all know the counts, so together they can exceed
a cap by what the others have out.
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
        return LifetimeCounts(self.impressions + other.impressions, self.clicks + other.clicks)


NO_COUNTS: Final = LifetimeCounts()


def find_reached_cap(caps: Caps, counts: LifetimeCounts) -> str | None:
    """Return the name of the cap that a campaign has reached, or None."""
    if caps.impressions is not None and counts.impressions >= caps.impressions:
        return IMPRESSION_CAP
    if caps.clicks is not None and counts.clicks >= caps.clicks:
        return CLICK_CAP
    return None


class CapTracker:
    """Counts of campaigns with caps, and the offers that this process has out."""

    def __init__(self) -> None:
        self._caps: Mapping[int, Caps] = {}
        self._counts: Mapping[int, LifetimeCounts] = {}
        self._reserved: dict[int, deque[int]] = {}  # By campaign, the seconds of its offers.
        self.changes: dict[
            int, str | None
        ] = {}  # By campaign, the cap that it reached; None: it may be shown again.

    def update(self, caps: Mapping[int, Caps], counts: Mapping[int, LifetimeCounts], *, second: int) -> None:
        """Apply the newest caps and counts; offers that were counted since are no longer out."""
        for campaign_key, reserved in self._reserved.items():
            before, now = (known.get(campaign_key, NO_COUNTS) for known in (self._counts, counts))
            for _ in range(min(len(reserved), now.impressions - before.impressions)):
                reserved.popleft()
            while reserved and reserved[0] <= second - RESERVED_SECONDS:
                reserved.popleft()
        self._reserved = {
            key: reserved for key, reserved in self._reserved.items() if reserved and key in caps
        }
        self._caps = caps
        self._counts = counts

    def reserve(self, campaign_key: int, *, second: int) -> bool:
        """Count one offer, or return False if none is left."""
        cap = self._caps.get(campaign_key)
        if cap is None or cap.impressions is None:
            return True  # New, or only its clicks are capped.
        reserved = self._reserved.get(campaign_key)
        if reserved is None:
            reserved = self._reserved[campaign_key] = deque()
        counts = self._counts.get(campaign_key)
        left = cap.impressions - len(reserved) - (counts.impressions if counts is not None else 0)
        if left > 0:
            reserved.append(second)
        if left <= 1:
            self.changes[campaign_key] = IMPRESSION_CAP
        return left > 0

    def release(self, campaign_key: int) -> None:
        """Take back an offer that was reserved just now, and is not made after all."""
        reserved = self._reserved.get(campaign_key)
        if reserved:
            reserved.pop()
            self.changes[campaign_key] = self._find_reached_cap(campaign_key)

    def take_changes(self) -> dict[int, str | None]:
        """Return the changes since the last call of this or of `find_reached`."""
        changes, self.changes = self.changes, {}
        return changes

    def find_reached(self) -> dict[str, frozenset[int]]:
        """Return the campaigns that have reached a cap, by its name."""
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
        reserved = self._reserved.get(campaign_key)
        counted = self._counts.get(campaign_key, NO_COUNTS).impressions
        return counted + (len(reserved) if reserved else 0)
