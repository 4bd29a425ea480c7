"""What is doubtful about a report of an offer: it comes too soon, from another site, or from an address with too many.

Tokens say when their offers were made. When an impression happened is not known that well: the tag reports it after a
second in view, and a visitor may click just before. So a click comes too soon if it comes sooner after the offer than
the least time to the impression and the least time from there to a click, together.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec

from adloom.core.ids import PlacementId
from adloom.events.ingest.ivt.flags import NO_FLAGS, Sender, TrafficFlags, truncate_address
from adloom.events.ingest.ivt.pages import PageCheck, PageOrigin
from adloom.events.ingest.ivt.pair_counts import PairCounts
from adloom.events.ingest.token import TICK_SECONDS, OfferToken
from adloom.events.log.event import Mark
from adloom.runtime.http.fast.fast_routes import FastRequest, index_headers

NO_TIME: Final = timedelta()
HALF_A_MICROSECOND: Final = 5e-7  # Seconds of today as floats are exact to less than that.
_OTHER: Final = PageOrigin.OTHER  # Looking up a member of an enum calls Python.
MARKS: Final = (Mark.DOUBTFUL_OFFER, Mark.OTHER_SITE, Mark.TOO_SOON, Mark.CAMPAIGN_FLOOD)


class OfferBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The least times, and the counts of how many impressions and clicks one address has of one campaign."""

    impression_after: timedelta = NO_TIME
    click_after: timedelta = NO_TIME  # The impression.
    impressions: PairCounts = msgspec.field(default_factory=lambda: PairCounts(0))
    clicks: PairCounts = msgspec.field(default_factory=lambda: PairCounts(0))


class OfferCheck:
    """Flags reports of offers. What goes by address does not concern internal ones: behind them are others."""

    def __init__(
        self, bounds: OfferBounds, pages: PageCheck, find_site: Callable[[PlacementId], str | None]
    ) -> None:
        self._impression_after = bounds.impression_after.total_seconds() - HALF_A_MICROSECOND
        self._click_after = self._impression_after + bounds.click_after.total_seconds()
        self._is_beyond_impressions = bounds.impressions.exceeds
        self._is_beyond_clicks = bounds.clicks.exceeds
        self._judge_page = pages.judge
        self._find_site = find_site
        # Plain counters, read by the metrics.
        self.marked: dict[Mark, int] = dict.fromkeys(MARKS, 0)

    def flag_report(  # noqa: PLR0913, PLR0917 - on the path of every event, where names would cost
        self,
        request: FastRequest,
        sender: Sender,
        offer: OfferToken,
        page_url: str | None,
        is_click: bool,  # noqa: FBT001 - likewise
        second: float,
        is_immediate: bool = False,  # noqa: FBT001, FBT002 - likewise
    ) -> TrafficFlags:
        """Return the flags of a report that has no others; it counts for its address if it has none and is new."""
        terms, site = offer.terms, self._find_site(offer.terms.placement_id)
        if site is None and sender.rate_key is None and not terms.is_void:
            return NO_FLAGS  # There is nothing to compare it with.
        mark = self._find_mark(
            request, sender.rate_key, offer, site, page_url, is_click, second, is_immediate
        )
        if mark is None:
            return NO_FLAGS
        self.marked[mark] += 1
        is_about_address = mark is Mark.CAMPAIGN_FLOOD and sender.address is not None
        return TrafficFlags((mark,), truncate_address(sender.address) if is_about_address else None)

    def _find_mark(  # noqa: PLR0913, PLR0917 - likewise
        self,
        request: FastRequest,
        address: bytes | None,
        offer: OfferToken,
        site: str | None,
        page_url: str | None,
        is_click: bool,  # noqa: FBT001 - likewise
        second: float,
        is_immediate: bool,  # noqa: FBT001 - likewise
    ) -> Mark | None:
        terms = offer.terms
        if terms.is_void:
            return Mark.DOUBTFUL_OFFER
        if site is not None:
            values = request.first_values
            if values is None:
                values = request.first_values = index_headers(request.headers)
            if self._judge_page(site, values, page_url) is _OTHER:
                return Mark.OTHER_SITE
        if address is None or offer.is_expired:
            return None
        least = self._click_after if is_click else self._impression_after
        # An offer from the future was made by a process whose clock is ahead.
        if 0 <= second - offer.second - offer.tick * TICK_SECONDS < least and not is_immediate:
            return Mark.TOO_SOON
        # Only what may be billed itself keeps others from it: neither free offers nor events of the other kind do.
        campaign = terms.campaign_id.int if terms.charge else ~terms.campaign_id.int
        is_beyond = self._is_beyond_clicks if is_click else self._is_beyond_impressions
        return Mark.CAMPAIGN_FLOOD if is_beyond(address, campaign, second, offer) else None
