"""The kinds of delivery."""

from enum import StrEnum


class Delivery(StrEnum):
    """What fills a placement."""

    DIRECT = "direct"
    AUCTION = "auction"
    CONTEXTUAL = "contextual"
