"""Who asks for the slots of a page, and when."""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from adloom.market.results.window import SiteResults
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.eligibility.frequency_lookup import NO_BANNERS, BannerKeys
from adloom.serving.request.overrides import Overrides
from adloom.targeting.context import Context

ParseContext = Callable[[FastRequest, ZoneInfo, datetime], Context]


class SlotVisit(msgspec.Struct, gc=False):
    """A visitor at a page, at a moment; the context is parsed where a candidate asks for it."""

    http: FastRequest
    overrides: Overrides
    parse: ParseContext
    now: datetime
    second: int
    request_id: bytes
    request_text: bytes
    served_at: bytes
    at: float = 0.0  # In seconds, with the fraction.
    user_id: UUID | None = None
    seen: BannerKeys = NO_BANNERS
    user: bytes = b""  # Sealed, for the pixel.
    is_free: bool = False  # For a doubtful sender: it holds nothing, and nothing of it counts.
    is_unheld: bool = False  # For a sender beyond its bounds: it holds nothing.
    context: Context | None = None
    zone: ZoneInfo | None = None
    results: SiteResults | None = None  # Of the page's site, once they were read.

    def parse_context(self, zone: ZoneInfo) -> Context:
        """Return the visitor's context, in the time zone of a slot."""
        if self.context is None or self.zone is not zone:
            self.context = self.overrides.apply_to(self.parse(self.http, zone, self.now))
            self.zone = zone
        return self.context
