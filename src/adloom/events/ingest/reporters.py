"""Who reports events and conversions with an API key."""

from typing import Protocol

from adloom.core.ids import CampaignId, PlacementId
from adloom.runtime.http.fast.fast_routes import FastRequest


class Reporters(Protocol):
    """Knows the servers that report for their visitors and customers, by the API keys that they send."""

    def is_reporter(self, request: FastRequest, placement_id: PlacementId, /) -> bool:
        """Return whether a request has a key for a placement; UnauthenticatedError or ForbiddenError for a wrong one."""
        ...

    def is_conversion_reporter(self, request: FastRequest, campaign_id: CampaignId, /) -> bool:
        """Return the same about the conversions of a campaign."""
        ...


class NoReporters:
    """Nobody has a key."""

    def is_reporter(self, request: FastRequest, placement_id: PlacementId) -> bool:
        del request, placement_id
        return False

    def is_conversion_reporter(self, request: FastRequest, campaign_id: CampaignId) -> bool:
        del request, campaign_id
        return False
