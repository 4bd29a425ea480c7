"""Impressions and clicks of ads that were won by auction, in the words of the auction's API.

A report with its offer's token is bound to that offer: its placement, its campaign and its price. Without
one it counts and is not billed, and its placement is the one on which its ad takes part in auctions.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import BannerNotFoundError, FieldProblem, ValidationFailedError
from adloom.core.ids import NO_USER, BannerId, CampaignId, PlacementId
from adloom.events.ingest.accept import build_correlation_id, verify_token
from adloom.events.ingest.api import EventRoutes
from adloom.events.ingest.request import ClickRequest, CorrelationId, ImpressionRequest, Moment
from adloom.events.ingest.token import TokenKeys
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastRoute
from adloom.serving.index.index import Index, IndexedPlacement
from adloom.serving.index.rows import Delivery

IMPRESSION_PATH: Final = b"/api/v1/ads/events/impression"
CLICK_PATH: Final = b"/api/v1/ads/events/click"

_ID_BYTES: Final = 16

T = TypeVar("T", ImpressionRequest, ClickRequest)


class AdEvent(msgspec.Struct, frozen=True, rename="camel"):
    """Somebody says that an ad was seen, or clicked."""

    ad_id: BannerId
    user_id: UUID
    timestamp: Moment | None = None
    correlation_id: CorrelationId | None = None
    tracking_token: str | None = None


_decode: Final = BodyDecoder(AdEvent).decode


class AdEventRoutes:
    """Handlers of the events; what becomes of them is decided where all events are taken."""

    def __init__(
        self, index: Callable[[], Index], tokens: TokenKeys, clock: Clock, events: EventRoutes
    ) -> None:
        self._index = index
        self._tokens = tokens
        self._now = clock.now
        self._taken = events.accept_report
        self._assigned = AuctionedAds()

    def routes(self) -> Sequence[FastRoute]:
        """List what this answers."""
        return (
            FastRoute(b"POST", IMPRESSION_PATH, is_prefix=False, handler=self.impression),
            FastRoute(b"POST", CLICK_PATH, is_prefix=False, handler=self.click),
        )

    def impression(self, request: FastRequest) -> asyncio.Future[FastAnswer]:
        """Take the report of an impression."""
        return self._taken(self._report(ImpressionRequest, request), request)

    def click(self, request: FastRequest) -> asyncio.Future[FastAnswer]:
        """Take the report of a click."""
        return self._taken(self._report(ClickRequest, request), request)

    def _report(self, kind: type[T], request: FastRequest) -> T:
        event = _decode(request.body)
        now = self._now()
        if event.tracking_token is None:
            placement_id, campaign_id = self._assigned.find_placement(event.ad_id, self._index())
            correlation_id = _correlation_of(event, now)
        else:
            offer = verify_token(event.tracking_token.encode(), tokens=self._tokens, now=now)
            placement_id, campaign_id = offer.placement_id, offer.campaign_id
            correlation_id = build_correlation_id(offer)
        return kind(
            correlation_id=event.correlation_id or correlation_id,
            banner_id=event.ad_id,
            placement_id=placement_id,
            campaign_id=campaign_id,
            user_id=None if event.user_id == NO_USER else event.user_id,
            occurred_at=event.timestamp,
            tracking_token=event.tracking_token,
        )


class AuctionedAds:
    """Where ads take part in auctions; what a placement has is found out once."""

    def __init__(self) -> None:
        self._index: Index | None = None
        self._known: dict[int, tuple[IndexedPlacement, dict[bytes, CampaignId | None]]] = {}

    def find_placement(self, ad_id: BannerId, index: Index) -> tuple[PlacementId, CampaignId | None]:
        """Tell the one placement of an ad, and its campaign if there is one only; else raise what to say besides."""
        if not index.has_banner(ad_id):
            raise BannerNotFoundError(f"There is no ad {ad_id}.")
        if index is not self._index:
            self._tidy(index)
        banner = ad_id.bytes
        places = [
            (placement.id, assigned[banner])
            for placement in index.by_key.values()
            if placement.delivery is Delivery.AUCTION and banner in (assigned := self._on(placement))
        ]
        if len(places) != 1:
            where = "several placements" if places else "no placement"
            message = f"This ad takes part in auctions on {where}: give the trackingToken of its offer."
            raise ValidationFailedError(message, errors=[FieldProblem("trackingToken", message)])
        return places[0]

    def _tidy(self, index: Index) -> None:
        """Forget what another index does not have any more."""
        self._index = index
        self._known = {key: known for key, known in self._known.items() if index.by_key.get(key) is known[0]}

    def _on(self, placement: IndexedPlacement) -> dict[bytes, CampaignId | None]:
        known = self._known.get(placement.key)
        if known is None or known[0] is not placement:
            assigned: dict[bytes, CampaignId | None] = {}
            for pair in placement.creatives:
                banner, campaign = pair[:_ID_BYTES], pair[_ID_BYTES:]
                # Of several campaigns nobody knows which it was.
                assigned[banner] = None if banner in assigned else CampaignId(UUID(bytes=campaign))
            known = self._known[placement.key] = placement, assigned
        return known[1]


def _correlation_of(event: AdEvent, now: datetime) -> str:
    """Name a report that has no name, so that a repeated one counts once as far as that can be told."""
    moment = event.timestamp or now.replace(microsecond=0)
    return f"ad:{event.ad_id}:{event.user_id}:{moment.isoformat()}"
