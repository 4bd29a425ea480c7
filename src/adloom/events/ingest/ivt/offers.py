"""What is doubtful about a report of an offer: it comes too soon, from another site, or from an address with too many.

Tokens say when their offers were made. When an impression happened is not known that well: the tag reports it after a
second in view, and a visitor may click just before. So a click comes too soon if it comes sooner after the offer than
the least time to the impression and the least time from there to a click, together.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from adloom.core.ids import PlacementId
from adloom.events.ingest.ivt.flags import NO_FLAGS, NO_TIME, Sender, TrafficFlags, truncate_address
from adloom.events.ingest.ivt.pages import PageCheck, PageOrigin
from adloom.events.ingest.ivt.pair_counts import PairCounts
from adloom.events.ingest.token import OfferToken
from adloom.events.log.event import Mark
from adloom.runtime.http.fast.fast_routes import FastRequest, index_headers

MARKS: Final = (Mark.DOUBTFUL_OFFER, Mark.OTHER_SITE, Mark.TOO_SOON, Mark.CAMPAIGN_FLOOD)


class OfferReport(msgspec.Struct, frozen=True, gc=False):
    """What a report of an offer says that may be doubtful."""

    is_click: bool
    page_url: str | None = None
    is_immediate: bool = False  # The request that asked for the offer shows it.


class OfferBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The least times, and the counts of how many events one address has of one campaign."""

    impression_after: timedelta = NO_TIME
    click_after: timedelta = NO_TIME  # The impression.
    events: PairCounts = msgspec.field(default_factory=lambda: PairCounts(0))
    clicks: PairCounts = msgspec.field(default_factory=lambda: PairCounts(0))


class OfferCheck:
    """Flags reports of offers. What goes by address does not concern internal ones: behind them are others."""

    def __init__(
        self, bounds: OfferBounds, pages: PageCheck, find_site: Callable[[PlacementId], str | None]
    ) -> None:
        self._impression_after = bounds.impression_after
        self._click_after = bounds.impression_after + bounds.click_after
        self._is_beyond = bounds.events.exceeds
        self._is_beyond_clicks = bounds.clicks.exceeds
        self._judge_page = pages.judge
        self._find_site = find_site
        # Plain counters, read by the metrics.
        self.marked: dict[Mark, int] = dict.fromkeys(MARKS, 0)

    def flag_report(
        self, request: FastRequest, sender: Sender, offer: OfferToken, report: OfferReport, now: datetime
    ) -> TrafficFlags:
        """Return the flags of a report that has no others; it counts for its address if it has none."""
        mark = self._find_mark(request, sender, offer, report, now)
        if mark is None:
            return NO_FLAGS
        self.marked[mark] += 1
        is_about_address = mark is Mark.CAMPAIGN_FLOOD and sender.address is not None
        return TrafficFlags((mark,), truncate_address(sender.address) if is_about_address else None)

    def _find_mark(
        self, request: FastRequest, sender: Sender, offer: OfferToken, report: OfferReport, now: datetime
    ) -> Mark | None:
        if offer.is_void:
            return Mark.DOUBTFUL_OFFER
        site = self._find_site(offer.placement_id)
        if site is not None and self._is_of_other_site(request, site, report.page_url):
            return Mark.OTHER_SITE
        address = sender.rate_key
        if address is None or offer.is_expired:
            return None
        least = self._click_after if report.is_click else self._impression_after
        # An offer from the future was made by a process whose clock is ahead.
        if NO_TIME <= now - offer.issued_at < least and not report.is_immediate:
            return Mark.TOO_SOON
        campaign = offer.campaign_id.int
        is_flood = self._is_beyond(address, campaign, now)
        if report.is_click:
            is_flood |= self._is_beyond_clicks(address, campaign, now)
        return Mark.CAMPAIGN_FLOOD if is_flood else None

    def _is_of_other_site(self, request: FastRequest, site: str, page_url: str | None) -> bool:
        values = request.first_values
        if values is None:
            values = request.first_values = index_headers(request.headers)
        return self._judge_page(site, values, page_url) is PageOrigin.OTHER
