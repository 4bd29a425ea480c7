"""The reports that browsers send, decoded once and valid by type, and what their requests add."""

from datetime import datetime
from typing import Annotated, Final, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Meta

from adloom.core.ids import BannerId, CampaignId, PlacementId

# The bounds are those of the columns; the address of a page has none there, so it gets one here.
CorrelationId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128)]
SessionId: TypeAlias = Annotated[str, Meta(max_length=128)]
DeviceType: TypeAlias = Annotated[str, Meta(max_length=20)]
# Letters of ISO 3166, and codes such as `T1` that proxies send.
CountryCode: TypeAlias = Annotated[str, Meta(pattern="^[A-Za-z0-9]{2}$", max_length=2)]
Address: TypeAlias = Annotated[str, Meta(max_length=8192, extra_json_schema={"format": "uri"})]
Moment: TypeAlias = Annotated[datetime, Meta(tz=True)]


class TrackedRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the reports of impressions and clicks have in common."""

    correlation_id: CorrelationId
    banner_id: BannerId
    placement_id: PlacementId
    campaign_id: CampaignId | None = None
    session_id: SessionId | None = None
    user_id: UUID | None = None
    device_type: DeviceType | None = None
    country_code: CountryCode | None = None
    page_url: Address | None = None
    occurred_at: Moment | None = None
    tracking_token: str | None = None


class ImpressionRequest(TrackedRequest, frozen=True, kw_only=True, rename="camel"):
    """A browser reports that a banner was seen."""

    referrer_url: Address | None = None


class ClickRequest(TrackedRequest, frozen=True, kw_only=True, rename="camel"):
    """A browser reports that a banner was clicked."""

    destination_url: Address | None = None


Report: TypeAlias = ImpressionRequest | ClickRequest


class RequestInfo(msgspec.Struct, frozen=True, gc=False):
    """The device and country of a request, where they are known; they stand in for what a report leaves out."""

    device_type: str | None = None
    country_code: str | None = None


UNKNOWN_REQUEST: Final = RequestInfo()
