"""Composes what looks at tokens and at the senders of requests and events in a delivery process."""

from collections.abc import Callable
from datetime import timedelta
from time import monotonic

import msgspec

from adloom.catalog.preview.token import PreviewKeys
from adloom.core.clock import Clock
from adloom.events.ingest.ivt.detector import TrafficDetector
from adloom.events.ingest.ivt.flags import Networks
from adloom.events.ingest.ivt.minute_counts import MinuteCounts
from adloom.events.ingest.ivt.offers import OfferBounds, OfferCheck
from adloom.events.ingest.ivt.pages import PageCheck
from adloom.events.ingest.ivt.pair_counts import PairCounts
from adloom.events.ingest.ivt.shared_counts import CountSharer
from adloom.events.ingest.token import TokenKeys
from adloom.runtime.settings import DeliverySettings, TrafficSettings
from adloom.runtime.valkey import Valkey
from adloom.serving.index.index import Index
from adloom.serving.request.context import ContextParser
from adloom.serving.request.rate_limit import RequestLimiter
from adloom.serving.request.sender_limits import SenderCheck


class AddressBounds(msgspec.Struct, frozen=True, kw_only=True):
    """What an address may send and have; all delivery processes count it together."""

    offers: OfferBounds
    # Events with a token: that are paid, by kind, and others.
    impressions: MinuteCounts
    clicks: MinuteCounts
    unpaid: MinuteCounts
    unbound: MinuteCounts  # Without a token.
    requests: MinuteCounts
    paid_requests: MinuteCounts  # Whose offers may hold budget.
    texts: MinuteCounts
    texts_of_site: MinuteCounts


class TrafficParts(msgspec.Struct, frozen=True, kw_only=True):
    """What decides whether a request is answered, an offer costs something, and an event is valid."""

    detector: TrafficDetector
    senders: SenderCheck
    limiter: RequestLimiter
    pages: PageCheck
    offers: OfferCheck
    bounds: AddressBounds


def lift_limits(settings: DeliverySettings) -> DeliverySettings:
    """Take away every bound that goes by address, if the settings say so."""
    if settings.traffic.has_limits:
        return settings
    return msgspec.structs.replace(
        settings,
        rate_limit_permits_per_minute=0,
        holds_per_address=0,
        events_per_address_per_minute=0,
        texts_per_address_per_minute=0,
        traffic=TrafficSettings(
            has_limits=False,
            events_per_hour=0,
            clicks_per_hour=0,
            impression_ms_min=0,
            click_ms_min=0,
        ),
    )


def build_token_keys(settings: DeliverySettings) -> TokenKeys:
    return TokenKeys(
        settings.token_secret,
        older=settings.older_token_secrets,
        lifetime=timedelta(seconds=settings.token_seconds),
    )


def build_preview_keys(settings: DeliverySettings) -> PreviewKeys:
    return PreviewKeys(settings.token_secret, older=settings.older_token_secrets)


def build_offer_bounds(settings: TrafficSettings) -> OfferBounds:
    return OfferBounds(
        impression_after=timedelta(milliseconds=settings.impression_ms_min),
        click_after=timedelta(milliseconds=settings.click_ms_min),
        impressions=PairCounts(settings.events_per_hour),
        clicks=PairCounts(settings.clicks_per_hour),
    )


def build_bounds(settings: DeliverySettings) -> AddressBounds:
    return AddressBounds(
        offers=build_offer_bounds(settings.traffic),
        impressions=MinuteCounts(settings.events_per_address_per_minute, counts_households=True),
        clicks=MinuteCounts(settings.events_per_address_per_minute, counts_households=True),
        unpaid=MinuteCounts(settings.events_per_address_per_minute, counts_households=True),
        unbound=MinuteCounts(settings.events_per_address_per_minute, counts_households=True),
        requests=MinuteCounts(settings.rate_limit_permits_per_minute),
        paid_requests=MinuteCounts(settings.events_per_address_per_minute),
        texts=MinuteCounts(settings.texts_per_address_per_minute),
        texts_of_site=MinuteCounts(settings.texts_per_site_per_minute),
    )


def build_sharer(valkey: Valkey, bounds: AddressBounds, clock: Clock, *, secret: str) -> CountSharer:
    return CountSharer(
        valkey,
        {"impressions": bounds.offers.impressions, "clicks": bounds.offers.clicks},
        {
            "impressions-by-minute": (bounds.impressions, lambda: clock.now().timestamp()),
            "clicks-by-minute": (bounds.clicks, lambda: clock.now().timestamp()),
            "unpaid-by-minute": (bounds.unpaid, lambda: clock.now().timestamp()),
            "unbound-by-minute": (bounds.unbound, lambda: clock.now().timestamp()),
            "requests": (bounds.requests, monotonic),
            "paid-requests": (bounds.paid_requests, lambda: clock.now().timestamp()),
            "texts": (bounds.texts, monotonic),
            "texts-of-site": (bounds.texts_of_site, monotonic),
        },
        secret=secret,
    )


def build_traffic(
    settings: DeliverySettings,
    contexts: ContextParser,
    bounds: AddressBounds,
    index: Callable[[], Index],
) -> TrafficParts:
    detector = TrafficDetector(
        contexts.is_crawler,
        trusted=settings.trusted_proxies,
        data_centers=Networks(settings.data_centers),
        impressions=bounds.impressions,
        clicks=bounds.clicks,
        unpaid=bounds.unpaid,
        unbound=bounds.unbound,
    )
    pages = PageCheck(settings.public_url)
    return TrafficParts(
        detector=detector,
        senders=SenderCheck(
            detector.identify_sender,
            requests=bounds.paid_requests,
            holds_max=settings.holds_per_address,
            hold_seconds=settings.hold_seconds,
        ),
        limiter=RequestLimiter(bounds.requests, detector),
        pages=pages,
        offers=OfferCheck(bounds.offers, pages, lambda placement_id: index().find_site(placement_id)),
        bounds=bounds,
    )
