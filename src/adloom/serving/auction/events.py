"""Impressions and clicks of auctioned ads, in the format of the auction's API.

A report with a token belongs to the token's offer: its placement, campaign and price. Without a token it is unbound:
counted apart, and not billed; its placement is the first on which its ad takes part in auctions.
"""

import operator
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import BannerNotFoundError, make_field_error
from adloom.core.ids import NO_USER, BannerId, CampaignId, PlacementId
from adloom.events.ingest.accept import (
    ClickRequest,
    CorrelationId,
    ImpressionRequest,
    Moment,
    verify_token,
)
from adloom.events.ingest.api import EventRoutes
from adloom.events.ingest.token import TokenKeys
from adloom.events.log.names import OFFER_NAMES
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import DeferredAnswer, FastRequest, FastRoute
from adloom.serving.index.index import Index, IndexedPlacement
from adloom.serving.index.rows import Delivery

IMPRESSION_PATH: Final = b"/api/v1/ads/events/impression"
CLICK_PATH: Final = b"/api/v1/ads/events/click"

_ID_BYTES: Final = 16


class AdEvent(msgspec.Struct, frozen=True, rename="camel"):
    """A report that an ad was seen or clicked."""

    ad_id: BannerId
    user_id: UUID
    timestamp: Moment | None = None
    correlation_id: CorrelationId | None = None
    tracking_token: str | None = None


_decode: Final = BodyDecoder(AdEvent).decode


class AdEventRoutes:
    """Translates reports into those of `EventRoutes`, which accepts all events."""

    def __init__(
        self, index: Callable[[], Index], tokens: TokenKeys, clock: Clock, events: EventRoutes
    ) -> None:
        self._index = index
        self._tokens = tokens
        self._now = clock.now
        self._accept_report = events.accept_report
        self._auctioned_ads = AuctionedAds()

    def list_routes(self) -> Sequence[FastRoute]:
        return (
            FastRoute(b"POST", IMPRESSION_PATH, is_prefix=False, handler=self.accept_impression),
            FastRoute(b"POST", CLICK_PATH, is_prefix=False, handler=self.accept_click),
        )

    def accept_impression(self, request: FastRequest) -> DeferredAnswer:
        return self._accept(ImpressionRequest, request)

    def accept_click(self, request: FastRequest) -> DeferredAnswer:
        return self._accept(ClickRequest, request)

    def _accept(
        self, kind: type[ImpressionRequest] | type[ClickRequest], request: FastRequest
    ) -> DeferredAnswer:
        event = _decode(request.body)
        now, offer = self._now(), None
        if event.tracking_token is None:
            placement_id, campaign_id = self._auctioned_ads.find_placement(event.ad_id, self._index())
            correlation_id = event.correlation_id or self._derive_correlation(event, now)
        else:
            offer = verify_token(event.tracking_token.encode(), tokens=self._tokens, now=now)
            placement_id, campaign_id = offer.terms.placement_id, offer.terms.campaign_id
            correlation_id = OFFER_NAMES  # Its event is named by the offer.
        report = kind(
            correlation_id=correlation_id,
            banner_id=event.ad_id,
            placement_id=placement_id,
            campaign_id=campaign_id,
            user_id=None if event.user_id.int == NO_USER.int else event.user_id,
            occurred_at=event.timestamp,
            tracking_token=event.tracking_token,
        )
        return self._accept_report(report, request, offer)

    def _derive_correlation(self, event: AdEvent, now: datetime) -> str:
        """Give a report without an id the same id when it is repeated, so that it counts once.

        Names are kept when a user is erased: this one has only a hash of the user, which others cannot compute.
        """
        moment = event.timestamp or now.replace(microsecond=0)
        user = self._tokens.signer.hash_user(event.user_id.bytes, event.ad_id.bytes).hex()
        return f"ad:{event.ad_id}:{user}:{moment.isoformat()}"


class AuctionedAds:
    """Finds the placements on which ads take part in auctions; cached by placement."""

    def __init__(self) -> None:
        self._index: Index | None = None
        self._known: dict[int, tuple[IndexedPlacement, dict[bytes, CampaignId | None]]] = {}

    def find_placement(self, ad_id: BannerId, index: Index) -> tuple[PlacementId, CampaignId | None]:
        """Return the oldest placement of an ad, and its campaign if it has only one there.

        BannerNotFoundError for an unknown ad; ValidationFailedError if it has no placement.
        """
        if not index.has_banner(ad_id):
            raise BannerNotFoundError(f"There is no ad {ad_id}.")
        if index is not self._index:
            self._drop_stale(index)
        banner = ad_id.bytes
        auctioned = [
            placement
            for placement in index.by_key.values()
            if placement.delivery is Delivery.AUCTION and banner in self._list_ads(placement)
        ]
        if not auctioned:
            message = "This ad takes part in auctions on no placement: give the trackingToken of its offer."
            raise make_field_error("trackingToken", message, message)
        first = min(auctioned, key=operator.attrgetter("key"))
        return first.id, self._list_ads(first)[banner]

    def _drop_stale(self, index: Index) -> None:
        self._index = index
        self._known = {key: known for key, known in self._known.items() if index.by_key.get(key) is known[0]}

    def _list_ads(self, placement: IndexedPlacement) -> dict[bytes, CampaignId | None]:
        known = self._known.get(placement.key)
        if known is None or known[0] is not placement:
            assigned: dict[bytes, CampaignId | None] = {}
            for pair in placement.creatives:
                banner, campaign = pair[:_ID_BYTES], pair[_ID_BYTES:]
                # With several campaigns it is unknown which one it was.
                assigned[banner] = None if banner in assigned else CampaignId(UUID(bytes=campaign))
            known = self._known[placement.key] = placement, assigned
        return known[1]
