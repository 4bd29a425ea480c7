"""The learned model of a delivery process: loaded in the background, and swapped by one reference."""

import asyncio
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Final, cast

import structlog

from adloom.auction.learned import KINDS_MAX, LEARNED, LearnedScoring
from adloom.auction.model import Model, UnreadableModelError, decode_in_steps
from adloom.auction.score import Scorer, Signals, Strengths
from adloom.core.clock import Clock
from adloom.events.ctr.publish import MODEL, MODEL_NOTICES
from adloom.runtime.valkey import VALKEY_AWAY, Subscription, Valkey
from adloom.serving.auction.market import StrengthSource
from adloom.serving.index.steps import Slicer

RETRY_SECONDS: Final = 1.0
CANCEL_AGAIN_SECONDS: Final = 0.1
LOOK_SECONDS: Final = 1.0
RANKED_MAX: Final = 100_000  # Bids, each once for a kind of reader: some microseconds each, for every model.

# In steps, between which requests are answered.
Rank = Callable[[str, StrengthSource], Generator[None, None, int]]

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class ModelLoader:
    """The policy `learned` over the newest model that can be had; until there is one, it is the heuristic."""

    def __init__(self, valkey: Valkey, clock: Clock) -> None:
        self.name = LEARNED
        self._valkey = valkey
        self._clock = clock
        self._news = asyncio.Event()
        self._scoring = LearnedScoring()
        self._ranking: Rank | None = None
        # Plain figures, read by a collector.
        self.examples = 0
        self.failures = 0
        self.loads = 0
        self._kinds_max = KINDS_MAX
        self._learned_at: datetime | None = None

    @property
    def version(self) -> int:
        """Tell which model is used; 0 is none."""
        return self._scoring.version

    @property
    def strengths(self) -> tuple[Strengths, ...]:
        """What is known of ads before a request."""
        return self._scoring.strengths

    def set_ranker(self, ranking: Rank) -> None:
        """Hear how bids are ranked by what is known of them, before it is used."""
        self._ranking = ranking

    def build_scorer(self, signals: Signals) -> Scorer:
        """Look at a request once, for all its ads."""
        return self._scoring.build_scorer(signals)

    def age(self, now: datetime) -> timedelta:
        """Tell how old what is used is; nothing has no age."""
        return timedelta() if self._learned_at is None else now - self._learned_at

    def age_seconds(self) -> float:
        """Tell its age now."""
        return self.age(self._clock.now()).total_seconds()

    async def run(self, stop: asyncio.Event) -> None:
        """Load what is published, whenever it is, until told to stop."""
        listening = Subscription(
            self._valkey, MODEL_NOTICES, heard=lambda _: self._news.set(), began=self._news.set
        )
        working = {asyncio.ensure_future(self._load_on()), asyncio.ensure_future(self._look_on())}
        try:
            await listening.run(stop)
        finally:
            # The driver loses a cancellation that meets a connection which is just being made.
            while working:
                for task in working:
                    task.cancel()
                _, working = await asyncio.wait(working, timeout=CANCEL_AGAIN_SECONDS)

    async def load(self) -> None:
        """Take what is published, unless it is what we have."""
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
        """Get to know how strong ads are for kinds of readers who come often, one kind after the other."""
        while len(self._scoring.kinds) < self._kinds_max:
            scoring = self._scoring
            kind = scoring.find_frequent_kind()
            if kind is None:
                return
            strengths = scoring.for_kind(kind)
            await self._rank(lambda strengths=strengths: (strengths,))
            scoring.use_kind(kind, strengths)

    async def _load_on(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self.load()
            except VALKEY_AWAY as error:
                self.failures += 1
                log.warning("model_not_loaded", error=repr(error))
                self._news.set()
                await asyncio.sleep(RETRY_SECONDS)
            except UnreadableModelError as error:
                # Of another release: what we have is better than nothing.
                self.failures += 1
                log.warning("model_unreadable", reason=str(error))
            except Exception:
                self.failures += 1
                log.exception("model_not_loaded")

    async def _rank(self, known: StrengthSource) -> int:
        return 0 if self._ranking is None else await Slicer(monotonic).run(self._ranking(LEARNED, known))

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
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
