"""Whether a report is accepted, and as which event: ids that exist, a token that is ours and fits."""

# pure

from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec

from adloom.core.errors import BannerNotFoundError, CampaignNotFoundError, PlacementNotFoundError
from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.events.ingest.ivt.flags import TrafficFlags
from adloom.events.ingest.ivt.request_info import RequestInfo
from adloom.events.ingest.request import ClickRequest, ImpressionRequest, TrackedRequest
from adloom.events.ingest.token import OfferToken, TokenKeys, TokenRejection, TrackingTokenInvalidError
from adloom.events.log.event import ChargedBy, Click, Impression, Mark, resolve_occurred_at


class CatalogIds(Protocol):
    """What the index knows of the catalog: everything that has a row, whether it serves now or not.

    A report comes after its offer, and what was offered may have been paused or deleted since.
    """

    def has_banner(self, banner_id: BannerId, /) -> bool:
        """Tell whether there is such a banner."""
        ...

    def has_placement(self, placement_id: PlacementId, /) -> bool:
        """Tell whether there is such a placement."""
        ...

    def has_campaign(self, campaign_id: CampaignId, /) -> bool:
        """Tell whether there is such a campaign."""
        ...

    def destination(
        self, campaign_id: CampaignId, placement_id: PlacementId, banner_id: BannerId, /
    ) -> str | None:
        """Tell where a click on an assignment leads."""
        ...


class Attribution(msgspec.Struct, frozen=True, gc=False):
    """What the rules make of a report's time and token."""

    occurred_at: datetime
    received_at: datetime
    campaign_id: CampaignId | None
    request_id: RequestId | None = None
    slot: int | None = None
    marks: tuple[Mark, ...] = ()
    offered_at: int = 0
    lease: int = 0
    charge: Micros = Micros(0)
    charged_by: ChargedBy = ChargedBy.IMPRESSION


def validate_report(
    report: TrackedRequest, *, known: CatalogIds, tokens: TokenKeys, now: datetime
) -> Attribution:
    """Accept a report, bound to its offer where it has a token, or raise what is wrong with it."""
    _check_ids(report, known)
    occurred_at, marks = resolve_occurred_at(report.occurred_at, now=now)
    if report.tracking_token is None:
        return Attribution(occurred_at, now, report.campaign_id, marks=marks)
    offer = verify_token(report.tracking_token.encode(), tokens=tokens, now=now)
    if not _fits(offer, report):
        raise TrackingTokenInvalidError("The tracking token belongs to another offer than the event.")
    return Attribution(
        occurred_at,
        now,
        offer.campaign_id,
        request_id=offer.request_id,
        slot=offer.slot,
        marks=marks + _marks(offer),
        offered_at=_second(offer),
        lease=offer.lease,
        charge=offer.charge,
        charged_by=offer.charged_by,
    )


def build_reported_impression(
    report: ImpressionRequest, attribution: Attribution, info: RequestInfo, flags: TrafficFlags
) -> Impression:
    """Make the event of an impression whose report was accepted."""
    return Impression(
        correlation_id=report.correlation_id,
        banner_id=report.banner_id,
        placement_id=report.placement_id,
        campaign_id=attribution.campaign_id,
        occurred_at=attribution.occurred_at,
        received_at=attribution.received_at,
        request_id=attribution.request_id,
        slot=attribution.slot,
        offered_at=attribution.offered_at,
        lease=attribution.lease,
        charge=attribution.charge,
        charged_by=attribution.charged_by,
        session_id=report.session_id,
        user_id=report.user_id,
        device_type=report.device_type or info.device_type,
        country_code=_upper(report.country_code) or info.country_code,
        page_url=report.page_url,
        client_network=flags.client_network,
        marks=attribution.marks + flags.marks,
        referrer_url=report.referrer_url,
    )


def build_reported_click(
    report: ClickRequest, attribution: Attribution, info: RequestInfo, flags: TrafficFlags
) -> Click:
    """Make the event of a click whose report was accepted."""
    return Click(
        correlation_id=report.correlation_id,
        banner_id=report.banner_id,
        placement_id=report.placement_id,
        campaign_id=attribution.campaign_id,
        occurred_at=attribution.occurred_at,
        received_at=attribution.received_at,
        request_id=attribution.request_id,
        slot=attribution.slot,
        offered_at=attribution.offered_at,
        lease=attribution.lease,
        charge=attribution.charge,
        charged_by=attribution.charged_by,
        session_id=report.session_id,
        user_id=report.user_id,
        device_type=report.device_type or info.device_type,
        country_code=_upper(report.country_code) or info.country_code,
        page_url=report.page_url,
        client_network=flags.client_network,
        marks=attribution.marks + flags.marks,
        destination_url=report.destination_url,
    )


def build_offered_impression(
    offer: OfferToken,
    info: RequestInfo,
    flags: TrafficFlags,
    *,
    now: datetime,
    user_id: UUID | None = None,
) -> Impression:
    """Make the event of a pixel that was fetched; all that it says itself is its token, and maybe its reader."""
    return Impression(
        correlation_id=build_correlation_id(offer),
        banner_id=offer.banner_id,
        placement_id=offer.placement_id,
        campaign_id=offer.campaign_id,
        occurred_at=now,
        received_at=now,
        request_id=offer.request_id,
        slot=offer.slot,
        offered_at=_second(offer),
        lease=offer.lease,
        charge=offer.charge,
        charged_by=offer.charged_by,
        user_id=user_id,
        device_type=info.device_type,
        country_code=info.country_code,
        client_network=flags.client_network,
        marks=_marks(offer) + flags.marks,
    )


def build_offered_click(
    offer: OfferToken,
    info: RequestInfo,
    flags: TrafficFlags,
    *,
    destination: str,
    now: datetime,
) -> Click:
    """Make the event of a click link that was followed."""
    return Click(
        correlation_id=build_correlation_id(offer),
        banner_id=offer.banner_id,
        placement_id=offer.placement_id,
        campaign_id=offer.campaign_id,
        occurred_at=now,
        received_at=now,
        request_id=offer.request_id,
        slot=offer.slot,
        offered_at=_second(offer),
        lease=offer.lease,
        charge=offer.charge,
        charged_by=offer.charged_by,
        device_type=info.device_type,
        country_code=info.country_code,
        client_network=flags.client_network,
        marks=_marks(offer) + flags.marks,
        destination_url=destination,
    )


def verify_token(token: bytes, *, tokens: TokenKeys, now: datetime) -> OfferToken:
    """Read a token, expired or not, or raise that it is none of ours."""
    offer = tokens.verify(token, now=now)
    if isinstance(offer, TokenRejection):
        raise TrackingTokenInvalidError("The tracking token was not made by this installation.")
    return offer


def _check_ids(report: TrackedRequest, known: CatalogIds) -> None:
    if not known.has_banner(report.banner_id):
        raise BannerNotFoundError(f"There is no banner {report.banner_id}.")
    if not known.has_placement(report.placement_id):
        raise PlacementNotFoundError(f"There is no placement {report.placement_id}.")
    if report.campaign_id is not None and not known.has_campaign(report.campaign_id):
        raise CampaignNotFoundError(f"There is no campaign {report.campaign_id}.")


def _fits(offer: OfferToken, report: TrackedRequest) -> bool:
    return (
        offer.banner_id == report.banner_id
        and offer.placement_id == report.placement_id
        and (report.campaign_id is None or report.campaign_id == offer.campaign_id)
    )


def _marks(offer: OfferToken) -> tuple[Mark, ...]:
    return (Mark.TOKEN_EXPIRED,) if offer.is_expired else ()


def _second(offer: OfferToken) -> int:
    return int(offer.issued_at.timestamp())


def build_correlation_id(offer: OfferToken) -> str:
    """Name the event by its offer, so that fetching an address again counts once."""
    return f"offer:{offer.request_id}:{offer.slot}"


def _upper(country_code: str | None) -> str | None:
    return country_code and country_code.upper()
