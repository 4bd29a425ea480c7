"""Loads the CTR model of a delivery process in the background, and swaps it by one reference."""

import asyncio
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from time import monotonic
from typing import Final, cast

import structlog

from adloom.auction.learned import KINDS_MAX, LEARNED, LearnedScoring
from adloom.auction.model import Model, UnreadableModelError, decode_in_steps
from adloom.auction.score import SwappableScoring
from adloom.core.clock import Clock
from adloom.events.ctr.publish import MODEL, MODEL_NOTICES
from adloom.runtime.loops import sleep_until_next
from adloom.runtime.valkey import VALKEY_AWAY, Subscription, Valkey
from adloom.serving.auction.market import StrengthSource
from adloom.serving.index.steps import Slicer

RETRY_SECONDS: Final = 1.0
CANCEL_AGAIN_SECONDS: Final = 0.1
RANK_SECONDS: Final = 1.0
RANKED_MAX: Final = 100_000  # Bids times kinds of visitors: some microseconds each, for every model.

# In steps, between which requests are answered.
Rank = Callable[[str, StrengthSource], Generator[None, None, int]]

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class ModelLoader(SwappableScoring[LearnedScoring]):
    """The policy `learned` over the newest model; the heuristic until there is one."""

    def __init__(self, valkey: Valkey, clock: Clock) -> None:
        super().__init__(LearnedScoring())
        self._valkey = valkey
        self._clock = clock
        self._published = asyncio.Event()
        self._ranking: Rank | None = None
        # Plain figures, read by a collector.
        self.examples = 0
        self.failures = 0
        self.loads = 0
        self._kinds_max = KINDS_MAX
        self._learned_at: datetime | None = None

    def set_ranker(self, ranking: Rank) -> None:
        """Rank bids by a model with this before the model is used."""
        self._ranking = ranking

    def measure_age_seconds(self) -> float:
        """Return how long ago the model learned its last example; 0 without a model."""
        learned_at = self._learned_at
        return 0.0 if learned_at is None else (self._clock.now() - learned_at).total_seconds()

    async def run(self, stop: asyncio.Event) -> None:
        listening = Subscription(
            self._valkey,
            MODEL_NOTICES,
            on_message=lambda _: self._published.set(),
            on_start=self._published.set,
        )
        working = {asyncio.ensure_future(self._keep_loading()), asyncio.ensure_future(self._keep_ranking())}
        try:
            await listening.run(stop)
        finally:
            # The driver loses a cancellation that meets a connection which is just being made.
            while working:
                for task in working:
                    task.cancel()
                _, working = await asyncio.wait(working, timeout=CANCEL_AGAIN_SECONDS)

    async def load(self) -> None:
        """Load the published model, unless it is in use."""
        # The stubs know every decoding; ours answers bytes.
        blob = cast("bytes | None", await self._valkey.get(MODEL))
        if blob is None:
            return
        model = await Slicer(monotonic).run(decode_in_steps(blob))
        if model.version != self.version:
            scoring = LearnedScoring(model)
            bids = await self._rank(lambda: scoring.strengths)
            self._kinds_max = min(KINDS_MAX, RANKED_MAX // max(1, bids))
            for kind in self._scoring.kinds[: self._kinds_max]:
                scoring.use_kind(kind)
            await self._rank(lambda: scoring.strengths)
            self._use(scoring, model)

    async def rank_frequent_kinds(self) -> None:
        """Rank bids for frequent kinds of visitors, one kind after the other."""
        while len(self._scoring.kinds) < self._kinds_max:
            scoring = self._scoring
            kind = scoring.find_frequent_kind()
            if kind is None:
                return
            strengths = scoring.build_for_kind(kind)
            await self._rank(lambda strengths=strengths: (strengths,))
            scoring.use_kind(kind, strengths)

    async def _keep_loading(self) -> None:
        while True:
            await self._published.wait()
            self._published.clear()
            try:
                await self.load()
            except VALKEY_AWAY as error:
                self.failures += 1
                log.warning("model_not_loaded", error=repr(error))
                self._published.set()
                await asyncio.sleep(RETRY_SECONDS)
            except UnreadableModelError as error:
                # From another release: keep the current model.
                self.failures += 1
                log.warning("model_unreadable", reason=str(error))
            except Exception:
                self.failures += 1
                log.exception("model_not_loaded")

    async def _rank(self, known: StrengthSource) -> int:
        return 0 if self._ranking is None else await Slicer(monotonic).run(self._ranking(LEARNED, known))

    async def _keep_ranking(self) -> None:
        while True:
            await sleep_until_next(RANK_SECONDS)
            try:
                await self.rank_frequent_kinds()
            except Exception:
                self.failures += 1
                log.exception("readers_not_looked_at")

    def _use(self, scoring: LearnedScoring, model: Model) -> None:
        before, self._scoring = self._scoring, scoring
        before.retire()
        self.examples = model.examples
        self._learned_at = datetime.fromtimestamp(model.learned_at, UTC)
        self.loads += 1
