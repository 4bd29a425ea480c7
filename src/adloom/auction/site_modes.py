"""How a site sells its slots: what needs approval, where the floor is, and what a winner pays."""

from enum import StrEnum


class ApprovalMode(StrEnum):
    """How a banner comes to be shown: by a decision, or at once where its advertiser is trusted, or always."""

    MANUAL = "manual"
    TRUSTED = "trusted"
    AUTOMATIC = "automatic"


class FloorMode(StrEnum):
    """Whether the floor stays as it is, or is moved to where it earns most."""

    FIXED = "fixed"
    SWEEP = "sweep"


class AuctionMode(StrEnum):
    """What a winner pays."""

    SECOND_PRICE = "second_price"
    FIRST_PRICE = "first_price"
