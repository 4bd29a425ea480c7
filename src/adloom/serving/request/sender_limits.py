"""Who may make offers hold budget: not crawlers, data centres or floods, and nobody beyond a bound per address."""

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Final

from adloom.events.ingest.ivt.flags import Sender
from adloom.events.ingest.ivt.minute_counts import AddressCount, MinuteCounts
from adloom.events.ingest.token import OfferToken
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.request.open_holds import AddressHolds, OpenHolds

SEEN_MAX: Final = 20_000  # 4 MB: a token that is reported again within so many others releases nothing.


class SenderCheck:
    """Decides whether the offers for a request hold budget and are billed."""

    def __init__(
        self,
        identify_sender: Callable[[FastRequest], Sender],
        *,
        requests: MinuteCounts | None = None,
        holds_max: int = 0,
        hold_seconds: int = 300,
    ) -> None:
        self._identify = identify_sender
        self._find_requests = (MinuteCounts(0) if requests is None else requests).find
        self._holds = OpenHolds(holds_max, hold_seconds=hold_seconds)
        self._seen: OrderedDict[tuple[bytes, int], None] = OrderedDict()  # The last offers that were seen.
        # Plain counters, read by the metrics: answers whose offers were free, by why.
        self.free = {"doubtful_sender": 0, "address_flood": 0, "open_holds": 0}

    def may_hold(self, request: FastRequest, offers: int, second: int) -> bool:
        """Whether the offers of an answer hold and cost anything; if so, they count as out."""
        sender: Sender = request.sender or self._identify(request)
        if sender.marks:
            self.free["doubtful_sender"] += 1
            return False
        if sender.rate_key is None:
            return True
        counts = sender.counts
        requests, holds = (counts is not None and counts.offers) or self._find(sender, sender.rate_key)
        if requests.exceeds(second):
            self.free["address_flood"] += 1
            return False
        if not holds.take(offers, second):
            self.free["open_holds"] += 1
            return False
        return True

    def give_back(self, request: FastRequest, offers: int, second: int) -> None:
        """Count offers as not out: they might have held something, but were not made."""
        sender: Sender = request.sender or self._identify(request)
        if sender.rate_key is not None:
            counts = sender.counts
            _, holds = (counts is not None and counts.offers) or self._find(sender, sender.rate_key)
            holds.release(second, offers)

    def _find(self, sender: Sender, key: bytes) -> tuple[AddressCount, AddressHolds]:
        found = self._find_requests(key), self._holds.find(key)
        if sender.counts is not None:
            sender.counts.offers = found
        return found

    def note_seen(self, sender: Sender, offer: OfferToken, now: datetime) -> None:
        """Count an offer whose token was reported as no longer out: once, and only if it held something."""
        if sender.rate_key is None or offer.is_expired or not (offer.terms.charge or offer.lease):
            return
        key = offer.request, offer.slot
        if key not in self._seen:
            self._seen[key] = None
            if len(self._seen) > SEEN_MAX:
                self._seen.popitem(last=False)
            self._holds.find(sender.rate_key).release(int(now.timestamp()))


class TrustingCheck:
    """Every sender may make offers hold."""

    def may_hold(self, request: FastRequest, offers: int, second: int) -> bool:  # noqa: ARG002 - as `SenderCheck`
        return True

    def give_back(self, request: FastRequest, offers: int, second: int) -> None:
        pass
