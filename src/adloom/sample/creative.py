"""A banner of the sample: words, a picture, and how often it is clicked."""

from enum import StrEnum
from typing import Final

import msgspec

SHOP: Final = "/sample/shop"


class Shape(StrEnum):
    """Where a banner is at home: in a card, across a page, or in a bar at its foot."""

    CARD = "card"
    WIDE = "wide"
    BAR = "bar"


class Creative(msgspec.Struct, frozen=True, kw_only=True):
    """A banner; `ctr` is how often one of the simulated readers who sees it clicks it."""

    key: str
    advertiser: str | None
    headline: str
    line: str
    action: str
    subject: str
    palette: str
    page: str
    alt: str
    shape: Shape = Shape.CARD
    is_for_feeds: bool = False
    ctr: float = 0.012
    brand: str | None = None
    window: tuple[str, str] | None = None
    recurrence: str | None = None
    is_draft: bool = False
    publish_in_days: int | None = None
    expired_days_ago: int | None = None
    per_user_day_max: int | None = None
