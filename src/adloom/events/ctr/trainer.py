"""Learning click rates: impressions of auctions wait until their clicks are known, then train the model.

The projection `learning` follows the auctions, which follow the event tables, so the context of the auction and the
validity of the impression can be looked up. A click is learned when its impression's time is over, not before: a
model that learns clicks at once and the rest half an hour later believes that everybody clicks every ad.

The state is saved in the transaction that deletes its examples. A version fences out a second worker: a trainer
that is refused, or does not know, drops what it has in memory and reads the state again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from adloom.auction.training import Learner, LearnerProgress, UnreadableLearnerError
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.events.ctr.pending import MILLIS, ExampleSampler, build_example
from adloom.events.ctr.publish import ModelPublisher
from adloom.events.ctr.store import DuePiece, LearningStore
from adloom.events.log.event import parse_entry_id
from adloom.events.log.stream import Lag
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry
from adloom.runtime.loops import pause

ROUND_SECONDS: Final = 5.0
PUBLISH_SECONDS: Final = 30.0
PIECES_MAX: Final = 100  # At most of a round; after a full one the next follows at once.
SLICE: Final = 50  # Examples learned without a pause: for a few milliseconds the worker does nothing else.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Trainer:
    """The one trainer of an installation, while this worker owns the projection."""

    def __init__(  # noqa: PLR0913 - what it stands between
        self,
        store: LearningStore,
        publisher: ModelPublisher,
        clock: Clock,
        *,
        wait: timedelta,
        is_owner: Callable[[], bool],
        lag: Callable[[str], Awaitable[Lag]],
    ) -> None:
        self._store = store
        self._publisher = publisher
        self._clock = clock
        self._wait_ms = int(wait / timedelta(milliseconds=1))
        self._is_owner = is_owner
        self._lag = lag
        self._learner: Learner | None = None
        self._learned_at: datetime | None = None
        self._published: tuple[int, datetime] | None = None
        # Plain counters, read by the metrics.
        self.version = 0
        self.clicked = 0
        self.ignored = 0
        self.failures = 0

    @property
    def learner(self) -> Learner | None:
        """The model so far, while this worker owns the projection."""
        return self._learner

    @property
    def progress(self) -> LearnerProgress:
        return self._learner.progress if self._learner else LearnerProgress()

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            seconds = ROUND_SECONDS
            try:
                if not self._is_owner():
                    self._drop_state()
                elif await self.learn() == PIECES_MAX:
                    seconds = 0.0
                if self._learner is not None:
                    await self.publish()
            except UnavailableError as error:
                self._count_failure()
                log.warning("learning_waits", reason=error.detail)
            except CursorMovedError:
                self._count_failure()
                log.warning("learning_done_by_another")
            except Exception:
                self._count_failure()
                log.exception("learning_failed")
            await pause(seconds, stop)

    async def learn(self) -> int:
        """Learn from what is due, and save that; return the number of pieces."""
        learner = self._learner or await self._load()
        if not await self._store.has_due(self._clock.now()):
            return 0  # How far the tables are need not be known.
        pieces = await self._store.read_due(await self._find_horizon(), pieces_max=PIECES_MAX)
        if not pieces:
            return 0
        # Until the new state is known to be saved, the one in memory is void.
        self._learner = None
        clicked = await self._teach(learner, pieces)
        now = self._clock.now()
        state = await asyncio.to_thread(learner.encode)
        await self._store.save_state(
            state,
            [piece.id for piece in pieces],
            version=self.version,
            now=now,
            calibrations=learner.calibrations,
        )
        self._learner, self._learned_at = learner, now
        self.version += 1
        self.clicked += clicked
        self.ignored += sum(len(piece.examples) for piece in pieces) - clicked
        return len(pieces)

    async def publish(self) -> None:
        """Publish a new version, not too often; the current one again if Valkey has lost it."""
        now, learner = self._clock.now(), self._learner
        if learner is None or self._learned_at is None:
            return
        if self._published is not None:
            version, at = self._published
            if now - at < timedelta(seconds=PUBLISH_SECONDS):
                return
            if version == self.version and await self._publisher.is_published():
                self._published = version, now
                return
        model = learner.build_model(version=self.version, at=self._learned_at.timestamp())
        await self._publisher.publish(model)
        self._published = self.version, now

    async def _load(self) -> Learner:
        version, state, learned_at = await self._store.read_state()
        learner = Learner()
        if state is not None:
            try:
                learner = await asyncio.to_thread(Learner.decode, state)
            except UnreadableLearnerError as error:
                # The state is of another release: it is learned from scratch, and replaced.
                log.warning("learning_begins_anew", reason=str(error))
                learned_at = None
        self._learner, self._learned_at, self.version = learner, learned_at, version
        return learner

    async def _find_horizon(self) -> datetime:
        """Return the time up to which impressions and their clicks can be looked up."""
        now = self._clock.now()
        lag = await self._lag(await self._store.read_cursor())
        return now - timedelta(seconds=lag.seconds) if lag.entries else now

    async def _teach(self, learner: Learner, pieces: list[DuePiece]) -> int:
        pending = [one for piece in pieces for one in piece.examples]
        clicks = await self._store.find_clicks(pending)
        clicked = 0
        for start in range(0, len(pending), SLICE):
            for one in pending[start : start + SLICE]:
                example = build_example(one, clicks.get(one.offer), wait_ms=self._wait_ms)
                clicked += example.is_clicked
                learner.learn(example)
            await asyncio.sleep(0)
        return clicked

    def _count_failure(self) -> None:
        self.failures += 1
        self._drop_state()

    def _drop_state(self) -> None:
        self._learner = self._learned_at = self._published = None
        self.version = 0


class LearningProjection:
    """Stores impressions as pending examples."""

    def __init__(
        self, store: LearningStore, *, wait: timedelta, sampler: ExampleSampler | None = None
    ) -> None:
        self._store = store
        self._wait = wait
        self._sampler = sampler or ExampleSampler()

    async def read_cursor(self) -> str:
        return await self._store.read_cursor()

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        found = await self._store.find_impressions(records)
        now_ms = parse_entry_id(cursor)[0]
        taken = self._sampler.sample(found, now_ms=now_ms)
        last_ms = max((one.seen_ms for one in taken), default=0)
        due_at = datetime.fromtimestamp(last_ms / MILLIS, UTC) + self._wait
        await self._store.add_pending(taken, due_at=due_at, after=after, cursor=cursor)
        return BatchResult(counted=len(taken), dropped=len(found) - len(taken))
