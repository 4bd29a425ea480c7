"""Whether a report of a browser is accepted, and as which event: its ids exist, and its token is ours and fits.

A report whose token names the same offer is checked in `api`, and does not come here. An event with a token has the name
of its offer. Names that clients choose cannot be those of offers, so an event without a token never takes the place of
one that is billed.
"""

# pure

import hashlib
from datetime import datetime
from enum import Enum, auto
from typing import Annotated, ClassVar, Final, Generic, Literal, Protocol, TypeAlias, TypeVar
from uuid import UUID

import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr

from adloom.core.errors import (
    BannerNotFoundError,
    CampaignNotFoundError,
    ForbiddenError,
    PlacementNotFoundError,
)
from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.core.money import Micros
from adloom.events.ingest.bounds import SURELY_SHORT, encode_bounded
from adloom.events.ingest.ivt.flags import TrafficFlags
from adloom.events.ingest.token import (
    OfferToken,
    TokenKeys,
    TokenRejection,
    TrackingTokenInvalidError,
)
from adloom.events.log.event import ChargedBy, Click, Event, Impression, Mark, Moment, resolve_occurred_at
from adloom.events.log.names import FLAGGED, OFFER_NAMES, hide_user
from adloom.events.log.offer_entry import ReportedClick, ReportedImpression, encode_entry
from adloom.taxonomy.topics import find_topic

# The bounds are those of the columns; the address of a page has none there, so it gets one here.
NAME_MAX: Final = 128
CorrelationId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]
SessionId: TypeAlias = Annotated[str, Meta(max_length=128)]
DeviceType: TypeAlias = Annotated[str, Meta(max_length=20)]
# Letters of ISO 3166, and codes such as `T1` that proxies send.
CountryCode: TypeAlias = Annotated[str, Meta(pattern="^[A-Za-z0-9]{2}$", max_length=2)]
Address: TypeAlias = Annotated[str, Meta(max_length=8192, extra_json_schema={"format": "uri"})]

# How other names begin: of what servers with a key report, and of clients that chose a beginning of ours.
KEY_NAMES: Final = "k:"
CLIENT_NAMES: Final = "c:"
_RESERVED: Final = (OFFER_NAMES, KEY_NAMES, CLIENT_NAMES)


# Of the ids of a report: as they are, or as text.
BannerT = TypeVar("BannerT")
PlacementT = TypeVar("PlacementT")
CampaignT = TypeVar("CampaignT")


class TrackedRequest(
    msgspec.Struct,
    Generic[BannerT, PlacementT, CampaignT],
    frozen=True,
    kw_only=True,
    rename="camel",
    gc=False,
):
    """What the reports of impressions and clicks have in common."""

    correlation_id: CorrelationId
    banner_id: BannerT
    placement_id: PlacementT
    campaign_id: CampaignT | None = None
    session_id: SessionId | None = None
    user_id: UUID | None = None
    device_type: DeviceType | None = None
    country_code: CountryCode | None = None
    page_url: Address | None = None
    occurred_at: Moment | None = None
    tracking_token: str | None = None


class ImpressionFields(
    TrackedRequest[BannerT, PlacementT, CampaignT], frozen=True, kw_only=True, rename="camel"
):
    """What reports of impressions have in common, whatever their ids are."""

    is_click: ClassVar[Literal[False]] = False  # To ask for the class of a struct takes much longer.

    referrer_url: Address | None = None


class ClickFields(TrackedRequest[BannerT, PlacementT, CampaignT], frozen=True, kw_only=True, rename="camel"):
    """What reports of clicks have in common, whatever their ids are."""

    is_click: ClassVar[Literal[True]] = True

    destination_url: Address | None = None


class ImpressionRequest(
    ImpressionFields[BannerId, PlacementId, CampaignId], frozen=True, kw_only=True, rename="camel"
):
    """A browser reports that a banner was seen."""


class ClickRequest(ClickFields[BannerId, PlacementId, CampaignId], frozen=True, kw_only=True, rename="camel"):
    """A browser reports that a banner was clicked."""


class NamedImpression(ImpressionFields[str, str, str], frozen=True, kw_only=True, rename="camel"):
    """An impression with its ids as text, which is all that a comparison with its offer needs."""


class NamedClick(ClickFields[str, str, str], frozen=True, kw_only=True, rename="camel"):
    """A click with its ids as text."""


Report: TypeAlias = ImpressionRequest | ClickRequest
AnyReport: TypeAlias = Report | NamedImpression | NamedClick


class RequestInfo(msgspec.Struct, frozen=True, gc=False):
    """The device and country of a request, where they are known; they stand in for what a report leaves out."""

    device_type: str | None = None
    country_code: str | None = None


UNKNOWN_REQUEST: Final = RequestInfo()


class CatalogIds(Protocol):
    """What the index has of the catalog: everything that has a row, whether it serves now or not.

    A report comes after its offer, and what was offered may have been paused or deleted since.
    """

    def has_banner(self, banner_id: BannerId, /) -> bool: ...

    def has_placement(self, placement_id: PlacementId, /) -> bool: ...

    def has_campaign(self, campaign_id: CampaignId, /) -> bool: ...

    def is_assigned(
        self, campaign_id: CampaignId | None, placement_id: PlacementId, banner_id: BannerId, /
    ) -> bool:
        """Whether the banner was ever to be shown there, in that campaign or, with None, in any."""
        ...

    def find_destination(
        self, campaign_id: CampaignId, placement_id: PlacementId, banner_id: BannerId, /
    ) -> str | None: ...

    def passes_click_id(self, campaign_id: CampaignId, placement_id: PlacementId, /) -> bool:
        """Whether the campaign wants its landing pages to get the id of the click."""
        ...


class Trust(Enum):
    """Why an event is accepted, or that it is not."""

    TOKEN = auto()
    API_KEY = auto()
    NONE = auto()


_UNTRUSTED: Final = Trust.NONE
_BY_IMPRESSION: Final = ChargedBy.IMPRESSION
_FREE: Final = Micros(0)


def validate_report(
    report: Report,
    read: OfferToken | None = None,
    *,
    known: CatalogIds,
    tokens: TokenKeys,
    now: datetime,
) -> OfferToken | None:
    """Return the offer of a report that has a token, which may have been read already; raise what is wrong with it."""
    if report.tracking_token is None:
        _check_ids(report, known)
        return None
    offer = read or tokens.verify(report.tracking_token.encode(), now=now)
    if type(offer) is OfferToken:
        terms, campaign_id = offer.terms, report.campaign_id
        # We have signed the ids of a report that fits its token, so they exist. Numbers: to compare ids calls Python.
        if (
            terms.banner_id.int == report.banner_id.int
            and terms.placement_id.int == report.placement_id.int
            and (campaign_id is None or campaign_id.int == terms.campaign_id.int)
        ):
            return offer
    _check_ids(report, known)
    if isinstance(offer, TokenRejection):
        raise TrackingTokenInvalidError("The tracking token was not made by this installation.")
    raise TrackingTokenInvalidError("The tracking token belongs to another offer than the event.")


def build_impression_report(offer: OfferToken, user_id: UUID | None) -> ImpressionRequest:
    """Build the report of a pixel that was fetched."""
    return ImpressionRequest(
        correlation_id=OFFER_NAMES,  # Its event is named by the offer.
        banner_id=offer.banner_id,
        placement_id=offer.placement_id,
        user_id=user_id,
    )


def build_click_report(offer: OfferToken, destination: str) -> ClickRequest:
    """Build the report of a click link that was followed."""
    return ClickRequest(
        correlation_id=OFFER_NAMES,
        banner_id=offer.banner_id,
        placement_id=offer.placement_id,
        destination_url=destination,
    )


def build_event(  # noqa: PLR0913 - all that an event is made from
    report: AnyReport,
    source: OfferToken | Report,
    info: RequestInfo,
    flags: TrafficFlags,
    *,
    now: datetime,
    trust: Trust = Trust.TOKEN,
    is_assigned: bool = True,
) -> Event:
    """Build the event of an accepted report; the request adds what the report leaves out.

    The ids are those of its source: its offer, or the report itself where it has none.
    """
    offer = source if isinstance(source, OfferToken) else None
    offered_at = None if offer is None or report.occurred_at is None else offer.issued_at
    occurred_at, marks = resolve_occurred_at(report.occurred_at, now=now, offered_at=offered_at)
    if offer is None:
        marks = (*marks, Mark.UNBOUND if trust is _UNTRUSTED else Mark.WITHOUT_OFFER)
    if not is_assigned:
        marks = (*marks, Mark.NOT_ASSIGNED)
    marks += flags.marks
    if offer is not None and offer.is_expired:
        marks = (*marks, Mark.TOKEN_EXPIRED)
    # All in one call without `**`: that would copy the names and values of every event twice.
    event = (Impression if isinstance(report, ImpressionFields) else Click)(
        correlation_id=_name_event(report, offer, trust, is_flagged=bool(flags.marks)),
        banner_id=source.banner_id,
        placement_id=source.placement_id,
        campaign_id=source.campaign_id,
        occurred_at=occurred_at,
        received_at=now,
        request_id=None if offer is None else offer.request_id,
        slot=None if offer is None else offer.slot,
        offered_at=0 if offer is None else offer.second,
        lease=0 if offer is None else offer.lease,
        charge=_FREE if offer is None else offer.charge,
        charged_by=_BY_IMPRESSION if offer is None else offer.charged_by,
        category=None if offer is None or not offer.topic else find_topic(offer.topic),
        session_id=report.session_id,
        user_id=report.user_id,
        device_type=report.device_type or info.device_type,
        country_code=report.country_code.upper() if report.country_code else info.country_code,
        page_url=report.page_url,
        client_network=flags.client_network,
        marks=marks,
    )
    # The one field that only its kind has; nobody has seen the event yet.
    if isinstance(report, ImpressionFields):
        force_setattr(event, "referrer_url", report.referrer_url)
    else:
        force_setattr(event, "destination_url", report.destination_url)
    return event


def encode_offered(
    report: AnyReport, offer: OfferToken, info: RequestInfo, flags: TrafficFlags, now: datetime
) -> bytes:
    """Encode the event of a report of an offer for the log, within its bounds."""
    if report.is_click is False:
        kind, other_url = ReportedImpression, report.referrer_url
    else:
        kind, other_url = ReportedClick, report.destination_url
    page, occurred_at, marks = report.page_url, now, ()
    if report.occurred_at is not None:
        occurred_at, marks = resolve_occurred_at(report.occurred_at, now=now, offered_at=offer.issued_at)
    if (
        marks
        or flags.marks
        or offer.is_expired
        or (page is not None and len(page) > SURELY_SHORT)
        or (other_url is not None and len(other_url) > SURELY_SHORT)
    ):
        return encode_bounded(build_event(report, offer, info, flags, now=now))
    country = report.country_code
    return encode_entry(  # As all others are.
        offer.request,
        offer.slot,
        kind(
            occurred_at,
            now,
            offer.second,
            offer.lease,
            report.session_id,
            report.user_id,
            report.device_type or info.device_type,
            country.upper() if country else info.country_code,
            page,
            other_url,
        ),
        offer.terms.entry,
    )


def verify_token(token: bytes, *, tokens: TokenKeys, now: datetime) -> OfferToken:
    """Read a token, expired or not; TrackingTokenInvalidError where we did not sign it."""
    offer = tokens.verify(token, now=now)
    if isinstance(offer, TokenRejection):
        raise TrackingTokenInvalidError("The tracking token was not made by this installation.")
    return offer


def require_token() -> ForbiddenError:
    return ForbiddenError(
        "This installation takes no events without a token: send the trackingToken of the offer, or an API key.",
        code="TRACKING_TOKEN_REQUIRED",
    )


def _name_event(report: AnyReport, offer: OfferToken | None, trust: Trust, *, is_flagged: bool) -> str:
    if offer is not None:
        name = f"{OFFER_NAMES}{offer.request_id}:{offer.slot}"  # So fetching an address again counts once.
        # A crawler or a browser that prefetches must not take the name of the visitor who comes after it.
        return name + FLAGGED if is_flagged else name
    name = report.correlation_id
    if report.user_id is not None:
        name = hide_user(name, report.user_id)
    if trust is Trust.API_KEY:
        # Of its placement: another publisher's key may not take the name.
        scope = f"{KEY_NAMES}{report.placement_id}:"
        return scope + (name if len(name) <= NAME_MAX - len(scope) else _hash_name(name))
    return CLIENT_NAMES + _hash_name(name) if name.startswith(_RESERVED) else name


def _hash_name(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _check_ids(report: Report, known: CatalogIds) -> None:
    if not known.has_banner(report.banner_id):
        raise BannerNotFoundError(f"There is no banner {report.banner_id}.")
    if not known.has_placement(report.placement_id):
        raise PlacementNotFoundError(f"There is no placement {report.placement_id}.")
    if report.campaign_id is not None and not known.has_campaign(report.campaign_id):
        raise CampaignNotFoundError(f"There is no campaign {report.campaign_id}.")
