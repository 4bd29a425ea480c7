"""Who may make offers hold budget: not crawlers, data centres or floods, and nobody beyond a bound per address.

Nothing of what is offered to a crawler or a data centre counts. Beyond its bounds an address gets offers without
a hold, which are charged when seen: else a script in a visitor's browser could make the ads there free.
"""

from collections.abc import Callable
from typing import Final

from adloom.budgets.messages import UNHELD_LEASE
from adloom.events.ingest.ivt.flags import Sender
from adloom.events.ingest.ivt.minute_counts import AddressCount, MinuteCounts
from adloom.events.ingest.token import OfferToken
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.request.open_holds import AddressHolds, OpenHolds

# A token that is reported again within so many others releases nothing. In two generations: 4 MB at most.
SEEN_MAX: Final = 10_000


class SenderCheck:
    """Decides whether the offers for a request hold budget, and whether they count at all."""

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
        # The last offers that were seen: when the newer ones are many, the older are forgotten.
        self._seen: set[tuple[bytes, int]] = set()
        self._seen_before: set[tuple[bytes, int]] = set()
        # Plain counters, read by the metrics: answers whose offers hold nothing, by why.
        self.free = {"doubtful_sender": 0, "address_flood": 0, "open_holds": 0}

    def may_hold(self, request: FastRequest, offers: int, second: int) -> bool:
        """Whether the offers of an answer hold anything; if so, they count as out."""
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

    def is_doubtful(self, request: FastRequest) -> bool:
        """Whether nothing of what is offered to a sender counts."""
        sender: Sender = request.sender or self._identify(request)
        return bool(sender.marks)

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

    def note_seen(self, sender: Sender, offer: OfferToken, second: float) -> None:
        """Count an offer whose token was reported as no longer out: once, and only if it held something."""
        key, lease = sender.rate_key, offer.lease
        if key is None or offer.is_expired or lease == UNHELD_LEASE or not (lease or offer.terms.charge):
            return
        seen = offer.request, offer.slot
        if seen in self._seen or seen in self._seen_before:
            return
        self._seen.add(seen)
        if len(self._seen) > SEEN_MAX:
            self._seen, self._seen_before = set(), self._seen
        counts = sender.counts
        _, holds = (counts is not None and counts.offers) or self._find(sender, key)
        holds.release(int(second))


class TrustingCheck:
    """Every sender may make offers hold."""

    def may_hold(self, request: FastRequest, offers: int, second: int) -> bool:  # noqa: ARG002 - as `SenderCheck`
        return True

    def is_doubtful(self, request: FastRequest) -> bool:  # noqa: ARG002 - likewise
        return False

    def give_back(self, request: FastRequest, offers: int, second: int) -> None:
        pass
