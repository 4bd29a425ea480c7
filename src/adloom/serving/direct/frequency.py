"""Frequency caps in direct and contextual delivery: ads that a known visitor has seen often enough take no part.

It is looked up only where a candidate of the placement has a cap and the request names its user. Without a user a cap
cannot hold, and the placement is filled as if there was none.
"""

from collections.abc import Callable
from uuid import UUID

from adloom.runtime.http.fast.errors import INTERNAL_FAILURE, answer_error
from adloom.runtime.http.fast.fast_routes import DeferredAnswer, FastAnswer
from adloom.serving.eligibility.frequency_lookup import (
    BannerKeys,
    CappedBannerCache,
    FrequencyLookup,
    SeenBanners,
)
from adloom.serving.index.index import Index, MarketPlacements

Answer = Callable[[BannerKeys], FastAnswer]


class DirectFrequency:
    """Answers requests that depend on what their visitor has seen; concurrent ones share a look-up."""

    def __init__(self, lookup: FrequencyLookup) -> None:
        self._lookup = lookup
        self._capped = CappedBannerCache()

    def answer_knowing(
        self, user_id: UUID, placements: MarketPlacements, index: Index, answer: Answer
    ) -> FastAnswer | DeferredAnswer:
        """Answer with the keys of the banners that were seen often enough, at once or when they are known."""
        pending = _PendingServe(answer_with=answer)
        seen = self._lookup.look_up((str(user_id),), self._capped.get(placements, index), pending)
        return pending if seen is None else answer(seen.enough)


class _PendingServe(DeferredAnswer, kw_only=True):
    """The answer of a request that waits to know what its visitor has seen."""

    answer_with: Answer
    result: FastAnswer = INTERNAL_FAILURE

    def work_out(self, seen: SeenBanners) -> None:
        try:
            self.result = self.answer_with(seen.enough)
        except Exception as error:  # noqa: BLE001 - the client gets an answer
            self.result = answer_error(error)

    def send(self) -> None:
        self.resolve(self.result)
