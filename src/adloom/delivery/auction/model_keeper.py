"""The learned model of a delivery process: loaded in the background, and swapped by one reference."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final, cast

import structlog

from adloom.auction.model import LEARNED, LearnedScoring, Model, UnreadableModelError, decoding
from adloom.auction.score import Scorer, Signals
from adloom.core.clock import Clock
from adloom.delivery.slices import Slices
from adloom.ledger.learning.publish import MODEL, MODEL_NOTICES
from adloom.runtime.subscription import Subscription
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

RETRY_SECONDS: Final = 1.0
CANCEL_AGAIN_SECONDS: Final = 0.1

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class ModelKeeper:
    """The policy `learned` over the newest model that can be had; until there is one, it is the heuristic."""

    def __init__(self, valkey: Valkey, clock: Clock) -> None:
        self.name = LEARNED
        self._valkey = valkey
        self._clock = clock
        self._news = asyncio.Event()
        self._scoring = LearnedScoring()
        # Plain figures, read by a collector.
        self.examples = 0
        self.failures = 0
        self.loads = 0
        self._learned_at: datetime | None = None

    @property
    def version(self) -> int:
        """Tell which model is used; 0 is none."""
        return self._scoring.version

    def scorer(self, signals: Signals) -> Scorer:
        """Look at a request once, for all its ads."""
        return self._scoring.scorer(signals)

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
        loading = asyncio.ensure_future(self._load_on())
        try:
            await listening.run(stop)
        finally:
            # The driver loses a cancellation that meets a connection which is just being made.
            while not loading.done():
                loading.cancel()
                await asyncio.wait([loading], timeout=CANCEL_AGAIN_SECONDS)

    async def load(self) -> None:
        """Take what is published, unless it is what we have."""
        # The stubs know every decoding; ours answers bytes.
        blob = cast("bytes | None", await self._valkey.get(MODEL))
        if blob is None:
            return
        model = await Slices().done(decoding(blob))
        if model.version != self.version:
            self._use(model)

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

    def _use(self, model: Model) -> None:
        self._scoring = LearnedScoring(model)
        self.examples = model.examples
        self._learned_at = datetime.fromtimestamp(model.learned_at, UTC)
        self.loads += 1
