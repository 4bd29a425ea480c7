"""What happened lately where a campaign may be shown: who looked, and how its auctions ended. Pure."""

# pure

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

WON: Final = "won"
LOST: Final = "lost"
REMOVED: Final = "removed"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Impressions of one hour on a placement, of readers from one country on one kind of device."""

    placement_key: int
    hour: datetime
    country: str | None
    device: str | None
    impressions: int
    own_impressions: int
    own_clicks: int


class Auctions(msgspec.Struct, frozen=True, kw_only=True):
    """How the auctions ended that the campaign could have been in; the last some thousand of them."""

    held: int = 0
    won: int = 0
    lost: int = 0
    removed: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])  # By the step that did it.
    ecpm: float | None = None  # What the campaign was worth where it lost,
    winning_ecpm: float | None = None  # and who won there.

    @property
    def absent(self) -> int:
        """Those that it was not even considered in."""
        return self.held - self.won - self.lost - sum(self.removed.values())

    def removed_by(self, *steps: str) -> int:
        """How often one of some steps took it out; `targeting` is every step that begins with it."""
        return sum(
            count
            for step, count in self.removed.items()
            if any(step == one or step.startswith(f"{one}:") for one in steps)
        )


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """All that happened since a moment."""

    since: datetime
    seen: Sequence[Seen] = ()
    auctions: Auctions = Auctions()

    @property
    def impressions(self) -> int:
        """What was seen on the placements, of any campaign."""
        return sum(one.impressions for one in self.seen)

    @property
    def own_impressions(self) -> int:
        """What was seen of the campaign itself."""
        return sum(one.own_impressions for one in self.seen)

    @property
    def own_clicks(self) -> int:
        """What was clicked of the campaign itself."""
        return sum(one.own_clicks for one in self.seen)

    @property
    def asked(self) -> int:
        """How often somebody was there to show something to."""
        return self.impressions + self.auctions.held
