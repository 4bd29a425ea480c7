"""The statuses of a campaign and the moves between them, as a table."""

# pure

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from adloom.core.errors import BadRequestError


class CampaignTransitionError(BadRequestError):
    """A move that is not in the table."""

    code = "CAMPAIGN_INVALID_TRANSITION"


class CampaignStatus(StrEnum):
    """Where a campaign is on its way."""

    DRAFT = "draft"
    SCHEDULED = "scheduled"
    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"
    CANCELLED = "cancelled"


ALLOWED_MOVES: Final[Mapping[CampaignStatus, frozenset[CampaignStatus]]] = {
    CampaignStatus.DRAFT: frozenset(
        {CampaignStatus.SCHEDULED, CampaignStatus.ACTIVE, CampaignStatus.CANCELLED}
    ),
    CampaignStatus.SCHEDULED: frozenset(
        {CampaignStatus.ACTIVE, CampaignStatus.DRAFT, CampaignStatus.CANCELLED}
    ),
    CampaignStatus.ACTIVE: frozenset({CampaignStatus.PAUSED, CampaignStatus.ENDED, CampaignStatus.CANCELLED}),
    CampaignStatus.PAUSED: frozenset({CampaignStatus.ACTIVE, CampaignStatus.ENDED, CampaignStatus.CANCELLED}),
    CampaignStatus.ENDED: frozenset(),
    CampaignStatus.CANCELLED: frozenset(),
}


def check_move(before: CampaignStatus, after: CampaignStatus) -> None:
    """Raise for a move that is not in the table, and say which ones are."""
    allowed = ALLOWED_MOVES[before]
    if after not in allowed:
        ways = f"It can become {', '.join(sorted(allowed))}." if allowed else "That status is final."
        raise CampaignTransitionError(f"A campaign that is {before} cannot become {after}. {ways}")
