"""The kinds of delivery."""

from enum import StrEnum


class Delivery(StrEnum):
    """What fills a placement."""

    DIRECT = "direct"
    AUCTION = "auction"
    CONTEXTUAL = "contextual"


class Rotation(StrEnum):
    """Which of several banners of one display order a direct placement shows first."""

    ORDERED = "ordered"  # The one with the highest weight, always.
    WEIGHTED = "weighted"  # By chance: twice the weight, twice as often.
    BEST = "best"  # The better one wins: by chance, the more often the more it is clicked.
