"""Whether a report of a browser is accepted, and as which event: its ids exist, and its token is ours and fits."""

# pure

from datetime import datetime
from typing import Annotated, Any, Final, Protocol, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Meta

from adloom.core.errors import BannerNotFoundError, CampaignNotFoundError, PlacementNotFoundError
from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.events.ingest.ivt.flags import TrafficFlags
from adloom.events.ingest.token import OfferToken, TokenKeys, TokenRejection, TrackingTokenInvalidError
from adloom.events.log.event import Click, Event, Impression, Mark, resolve_occurred_at
from adloom.events.log.names import hide_user

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


class CatalogIds(Protocol):
    """What the index knows of the catalog: everything that has a row, whether it serves now or not.

    A report comes after its offer, and what was offered may have been paused or deleted since.
    """

    def has_banner(self, banner_id: BannerId, /) -> bool: ...

    def has_placement(self, placement_id: PlacementId, /) -> bool: ...

    def has_campaign(self, campaign_id: CampaignId, /) -> bool: ...

    def destination(
        self, campaign_id: CampaignId, placement_id: PlacementId, banner_id: BannerId, /
    ) -> str | None: ...


def validate_report(
    report: Report, *, known: CatalogIds, tokens: TokenKeys, now: datetime
) -> OfferToken | None:
    """Return the offer of a report that has a token; raise what is wrong with it."""
    _check_ids(report, known)
    if report.tracking_token is None:
        return None
    offer = verify_token(report.tracking_token.encode(), tokens=tokens, now=now)
    if not _fits(offer, report):
        raise TrackingTokenInvalidError("The tracking token belongs to another offer than the event.")
    return offer


def build_impression_report(offer: OfferToken, user_id: UUID | None) -> ImpressionRequest:
    """Build the report of a pixel that was fetched."""
    return ImpressionRequest(
        correlation_id=build_correlation_id(offer),
        banner_id=offer.banner_id,
        placement_id=offer.placement_id,
        user_id=user_id,
    )


def build_click_report(offer: OfferToken, destination: str) -> ClickRequest:
    """Build the report of a click link that was followed."""
    return ClickRequest(
        correlation_id=build_correlation_id(offer),
        banner_id=offer.banner_id,
        placement_id=offer.placement_id,
        destination_url=destination,
    )


def build_event(
    report: Report, offer: OfferToken | None, info: RequestInfo, flags: TrafficFlags, *, now: datetime
) -> Event:
    """Build the event of an accepted report; the request adds what the report leaves out."""
    occurred_at, marks = resolve_occurred_at(report.occurred_at, now=now)
    more: dict[str, Any] = {}
    if offer is not None:
        marks = (*marks, Mark.TOKEN_EXPIRED) if offer.is_expired else marks
        more = {
            "request_id": offer.request_id,
            "slot": offer.slot,
            "offered_at": int(offer.issued_at.timestamp()),
            "lease": offer.lease,
            "charge": offer.charge,
            "charged_by": offer.charged_by,
        }
    if isinstance(report, ImpressionRequest):
        kind, more["referrer_url"] = Impression, report.referrer_url
    else:
        kind, more["destination_url"] = Click, report.destination_url
    return kind(
        correlation_id=report.correlation_id
        if report.user_id is None
        else hide_user(report.correlation_id, report.user_id),
        banner_id=report.banner_id,
        placement_id=report.placement_id,
        campaign_id=report.campaign_id if offer is None else offer.campaign_id,
        occurred_at=occurred_at,
        received_at=now,
        session_id=report.session_id,
        user_id=report.user_id,
        device_type=report.device_type or info.device_type,
        country_code=report.country_code.upper() if report.country_code else info.country_code,
        page_url=report.page_url,
        client_network=flags.client_network,
        marks=marks + flags.marks,
        **more,
    )


def verify_token(token: bytes, *, tokens: TokenKeys, now: datetime) -> OfferToken:
    """Read a token, expired or not; TrackingTokenInvalidError where we did not sign it."""
    offer = tokens.verify(token, now=now)
    if isinstance(offer, TokenRejection):
        raise TrackingTokenInvalidError("The tracking token was not made by this installation.")
    return offer


def build_correlation_id(offer: OfferToken) -> str:
    """Name the event by its offer, so that fetching an address again counts once."""
    return f"offer:{offer.request_id}:{offer.slot}"


def _check_ids(report: Report, known: CatalogIds) -> None:
    if not known.has_banner(report.banner_id):
        raise BannerNotFoundError(f"There is no banner {report.banner_id}.")
    if not known.has_placement(report.placement_id):
        raise PlacementNotFoundError(f"There is no placement {report.placement_id}.")
    if report.campaign_id is not None and not known.has_campaign(report.campaign_id):
        raise CampaignNotFoundError(f"There is no campaign {report.campaign_id}.")


def _fits(offer: OfferToken, report: Report) -> bool:
    return (
        offer.banner_id == report.banner_id
        and offer.placement_id == report.placement_id
        and (report.campaign_id is None or report.campaign_id == offer.campaign_id)
    )
