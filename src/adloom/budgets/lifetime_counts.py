"""What campaigns have had in their lives."""

# pure

from typing import Final

import msgspec


class LifetimeCounts(msgspec.Struct, frozen=True):
    """What a campaign has had in its life."""

    impressions: int = 0
    clicks: int = 0

    def __add__(self, other: "LifetimeCounts") -> "LifetimeCounts":
        return LifetimeCounts(self.impressions + other.impressions, self.clicks + other.clicks)


NO_COUNTS: Final = LifetimeCounts()
