"""A link lets a campaign use a placement, an assignment shows a banner there; what the placement's publisher decides."""

# pure

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final
from uuid import UUID

import msgspec
from pydantic import Field

from adloom.core.errors import ConflictError
from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.runtime.http.api.shapes import Flag, Natural, Text, Text100, Text255, WebAddress

WEIGHT_DEFAULT: Final = 100
REASON_LENGTH_MAX: Final = 500

# What was said with the last decision.
Reason = Annotated[Text, Field(max_length=REASON_LENGTH_MAX)]


class LinkState(StrEnum):
    """What the placement's publisher has said; only an accepted link serves."""

    REQUESTED = "requested"
    ACCEPTED = "accepted"
    REFUSED = "refused"


class Decision(StrEnum):
    """What a publisher can say."""

    ACCEPT = "accept"
    REFUSE = "refuse"


class PublisherRefusedError(ConflictError):
    """An account may not remove what a publisher has refused: it could ask again as if nothing had been said."""

    code = "CAMPAIGN_PLACEMENT_REFUSED"


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign may show its banners on a placement."""

    campaign_id: CampaignId
    placement_id: PlacementId
    is_active: Flag = True
    state: Annotated[
        LinkState, Field(description="Only an accepted link serves; the placement's publisher decides.")
    ] = LinkState.ACCEPTED
    reason: Annotated[Reason | None, Field(description="What was said with the decision.")] = None
    is_asked_for: Annotated[
        Flag, Field(description="Whether the advertiser made the link, and not an admin.")
    ] = False
    created_at: datetime
    updated_at: datetime

    def begun(self, account_id: UUID | None, *, is_open: bool, publisher_id: UUID | None) -> "Link":
        """Return a new link as it begins: an account asks for a placement that is neither open nor its own."""
        if account_id is None:
            return self
        state = LinkState.ACCEPTED if is_open or publisher_id == account_id else LinkState.REQUESTED
        return msgspec.structs.replace(self, state=state, reason=None, is_asked_for=True)

    def decided(self, decision: Decision, reason: str | None, *, now: datetime) -> "Link":
        state = LinkState.ACCEPTED if decision is Decision.ACCEPT else LinkState.REFUSED
        return msgspec.structs.replace(self, state=state, reason=reason, updated_at=now)

    def check_removal(self, account_id: UUID | None) -> None:
        """Raise where an account would remove a refusal."""
        if account_id is not None and self.state is LinkState.REFUSED:
            raise PublisherRefusedError(
                "The placement's publisher has refused this campaign, and the link is the record of it. "
                "Switch it off instead, or ask an admin to remove it."
            )


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """This banner, in this campaign, on this placement."""

    campaign_id: CampaignId
    placement_id: PlacementId
    banner_id: BannerId
    display_order: Natural = 0
    weight: Natural = WEIGHT_DEFAULT
    is_fallback: Flag = False
    fallback_priority: Natural | None = None
    is_active: Flag = True
    override_cta_label: Text100 | None = None
    override_cta_url: WebAddress | None = None
    override_headline: Text255 | None = None
    override_subheadline: Text255 | None = None
    transition_duration_ms: Natural | None = None
    is_refused: Annotated[
        Flag,
        Field(
            description="Whether the placement's publisher has refused the banner; then it does not serve."
        ),
    ] = False
    reason: Annotated[Reason | None, Field(description="What was said with the decision.")] = None
    created_at: datetime
    updated_at: datetime

    def decided(self, decision: Decision, reason: str | None, *, now: datetime) -> "Assignment":
        is_refused = decision is Decision.REFUSE
        return msgspec.structs.replace(self, is_refused=is_refused, reason=reason, updated_at=now)

    def check_removal(self, account_id: UUID | None) -> None:
        """Raise where an account would remove a refusal."""
        if account_id is not None and self.is_refused:
            raise PublisherRefusedError(
                "The placement's publisher has refused this banner, and its assignment is the record of it. "
                "Switch it off instead, or ask an admin to remove it.",
                code="BANNER_ASSIGNMENT_REFUSED",
            )
