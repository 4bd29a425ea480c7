"""What each placement has to offer at the moment, and the answers made from it: all that changes here.

The index is immutable; what changes under it is who is in time and who is excluded. A shelf keeps both
as bitmaps, and with them the answers by context. They go when the bitmaps change, at once and only
those of this placement.
"""

from collections import deque
from collections.abc import Generator, Iterable
from datetime import datetime

import msgspec

from adloom.delivery.compile import finished
from adloom.delivery.creative import ids_of, token_ids_of
from adloom.delivery.decide import decide
from adloom.delivery.exclusions import NOBODY, Exclusions, remaining
from adloom.delivery.index import Candidate, Index, Placement
from adloom.delivery.openings import Openings, advanced, opening
from adloom.targeting.context import Context

ANSWERS_KEPT_SECONDS = 60
ANSWERS_MAX = 10_000  # Beyond this the oldest go: all of them would, within `keep_seconds`.


class Offer(msgspec.Struct, frozen=True, gc=False):
    """A candidate that fills a slot, as far as it is the same for every request."""

    candidate: Candidate
    token_ids: bytes
    ids: bytes


class Shelf:
    """One placement's candidates at the moment."""

    __slots__ = ("_offers", "answers", "available", "exclusions", "openings", "placement", "since", "until")

    def __init__(self, placement: Placement, openings: Openings, exclusions: Exclusions) -> None:
        self.placement = placement
        self._offers: dict[bytes, Offer] = {}  # Made when a candidate is first chosen; answers share them.
        self.answers: dict[Context, tuple[int, tuple[Offer, ...]]] = {}
        self.available: tuple[int, ...] = ()
        self.stock(openings, exclusions)

    def stock(self, openings: Openings, exclusions: Exclusions) -> None:
        """Put out what may serve now; answers made from the same stay."""
        available = remaining(openings.masks, self.placement, exclusions)
        if available != self.available:
            self.answers.clear()
        self.openings = openings
        self.since = openings.since
        self.until = openings.until
        self.exclusions = exclusions
        self.available = available

    def offers_of(self, candidates: Iterable[Candidate]) -> tuple[Offer, ...]:
        """Prepare what every answer with these candidates has in common."""
        made = self._offers
        offers: list[Offer] = []
        for one in candidates:
            offer = made.get(one.pair)
            if offer is None:
                token_ids = token_ids_of(one.pair, self.placement.id.bytes)
                offer = made[one.pair] = Offer(one, token_ids, ids_of(one.pair))
            offers.append(offer)
        return tuple(offers)


class Shelves:
    """The shelves of all placements of the index."""

    def __init__(self, *, keep_seconds: int = ANSWERS_KEPT_SECONDS, answers_max: int = ANSWERS_MAX) -> None:
        self._keep_seconds = keep_seconds
        self._answers_max = answers_max
        self._by_key: dict[int, Shelf] = {}
        self._kept: deque[tuple[dict[Context, tuple[int, tuple[Offer, ...]]], Context]] = deque()
        self._exclusions = NOBODY
        self.hits = 0
        self.misses = 0

    def exclude(self, exclusions: Exclusions) -> None:
        """Say who may not serve from now on."""
        if exclusions != self._exclusions:
            self._exclusions = exclusions

    def preparing(self, placement: Placement, *, now: datetime) -> Generator[None, None, Shelf]:
        """Make a shelf ahead of the first request for it, with pauses."""
        openings = yield from opening(placement, now=now)
        return Shelf(placement, openings, self._exclusions)

    def put_up(self, index: Index, shelves: Iterable[Shelf]) -> None:
        """Take shelves that were prepared, in the moment in which their index becomes the current one."""
        for shelf in shelves:
            self._by_key[shelf.placement.key] = shelf
        for key in self._by_key.keys() - index.by_key.keys():
            del self._by_key[key]

    def of(self, placement: Placement, now: datetime) -> Shelf:
        """Give the shelf of a placement as it is now."""
        shelf = self._by_key.get(placement.key)
        if shelf is None or shelf.placement is not placement:
            shelf = self._by_key[placement.key] = finished(self.preparing(placement, now=now))
        elif not shelf.since <= now < shelf.until:
            shelf.stock(_reopened(shelf, now), self._exclusions)
        elif shelf.exclusions is not self._exclusions:
            shelf.stock(shelf.openings, self._exclusions)
        return shelf

    def offers(self, shelf: Shelf, context: Context, second: int) -> tuple[Offer, ...]:
        """Decide, or remember what was decided for the same context a moment ago."""
        answers = shelf.answers
        answer = answers.get(context)
        if answer is not None and second < answer[0]:
            self.hits += 1
            return answer[1]
        self.misses += 1
        offers = shelf.offers_of(decide(shelf.placement, context, shelf.available))
        if self._keep_seconds:
            self._keep(answers, context, second + self._keep_seconds, offers)
        return offers

    def _keep(
        self,
        answers: dict[Context, tuple[int, tuple[Offer, ...]]],
        context: Context,
        until: int,
        offers: tuple[Offer, ...],
    ) -> None:
        answers[context] = (until, offers)
        self._kept.append((answers, context))
        if len(self._kept) > self._answers_max:
            oldest, its_context = self._kept.popleft()
            oldest.pop(its_context, None)


def _reopened(shelf: Shelf, now: datetime) -> Openings:
    if now < shelf.since:  # The machine's clock was set back.
        return finished(opening(shelf.placement, now=now))
    return advanced(shelf.openings, shelf.placement, now=now)
