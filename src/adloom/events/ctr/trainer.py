"""Learning from impressions whose time is over, and publishing what was learned.

What is learned is kept in the transaction that takes out what it was learned from. A version fences out a
second worker; whoever is refused, or does not know, forgets what it has in memory and reads it again.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

import structlog

from adloom.auction.training import Learner, LearnerProgress, UnreadableLearnerError
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.events.ctr.publish import ModelPublisher
from adloom.events.ctr.store import DuePiece, LearningStore
from adloom.events.ctr.waiting import build_example
from adloom.events.log.stream import Lag
from adloom.events.ports import CursorMovedError

TURN_SECONDS: Final = 5.0
PUBLISH_SECONDS: Final = 30.0
PIECES_MAX: Final = 100  # At most so many of a turn; where there were as many, the next one follows at once.
SLICE: Final = 50  # Examples learned in one go: a few milliseconds, in which the worker does nothing else.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Trainer:
    """The one learner of a house, while it is this worker's turn."""

    def __init__(  # noqa: PLR0913 - what it stands between
        self,
        store: LearningStore,
        publisher: ModelPublisher,
        clock: Clock,
        *,
        wait: timedelta,
        is_its_turn: Callable[[], bool],
        lag: Callable[[str], Awaitable[Lag]],
    ) -> None:
        self._store = store
        self._publisher = publisher
        self._clock = clock
        self._wait_ms = int(wait / timedelta(milliseconds=1))
        self._is_its_turn = is_its_turn
        self._lag = lag
        self._learner: Learner | None = None
        self._learned_at: datetime | None = None
        self._published: tuple[int, datetime] | None = None
        # Plain counters, read by a collector.
        self.version = 0
        self.clicked = 0
        self.ignored = 0
        self.failures = 0

    @property
    def learner(self) -> Learner | None:
        """What has learned so far, while it is this worker's turn."""
        return self._learner

    @property
    def progress(self) -> LearnerProgress:
        """Some numbers about it."""
        return self._learner.progress if self._learner else LearnerProgress()

    async def run(self, stop: asyncio.Event) -> None:
        """Learn and publish until told to stop."""
        while not stop.is_set():
            seconds = TURN_SECONDS
            try:
                if not self._is_its_turn():
                    self._forget()
                elif await self.learn() == PIECES_MAX:
                    seconds = 0.0
                if self._learner is not None:
                    await self.publish()
            except UnavailableError as error:
                self._failed()
                log.warning("learning_waits", reason=error.detail)
            except CursorMovedError:
                self._failed()
                log.warning("learning_done_by_another")
            except Exception:
                self._failed()
                log.exception("learning_failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await stop.wait()

    async def learn(self) -> int:
        """Learn from what is due, and keep that; tell how many pieces it were."""
        learner = self._learner or await self._read()
        pieces = await self._store.read_due(await self._horizon(), pieces_max=PIECES_MAX)
        if not pieces:
            return 0
        # Until it is known to be kept, what is in memory is worth nothing.
        self._learner = None
        clicked = await self._taught(learner, pieces)
        now = self._clock.now()
        state = await asyncio.to_thread(learner.encode)
        await self._store.save_state(state, [piece.id for piece in pieces], version=self.version, now=now)
        self._learner, self._learned_at = learner, now
        self.version += 1
        self.clicked += clicked
        self.ignored += sum(len(piece.waiting) for piece in pieces) - clicked
        return len(pieces)

    async def publish(self) -> None:
        """Publish a new version, not too often; an old one where it has got lost."""
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

    async def _read(self) -> Learner:
        version, state, learned_at = await self._store.read_state()
        learner = Learner()
        if state is not None:
            try:
                learner = await asyncio.to_thread(Learner.decode, state)
            except UnreadableLearnerError as error:
                # Of another release: what it knew is learned anew, and replaced.
                log.warning("learning_begins_anew", reason=str(error))
                learned_at = None
        self._learner, self._learned_at, self.version = learner, learned_at, version
        return learner

    async def _horizon(self) -> datetime:
        """Tell up to which moment all that was reported can be looked up: impressions, and clicks of them."""
        now = self._clock.now()
        lag = await self._lag(await self._store.read_cursor())
        return now - timedelta(seconds=lag.seconds) if lag.entries else now

    async def _taught(self, learner: Learner, pieces: list[DuePiece]) -> int:
        waiting = [one for piece in pieces for one in piece.waiting]
        clicks = await self._store.find_clicks(waiting)
        clicked = 0
        for start in range(0, len(waiting), SLICE):
            for one in waiting[start : start + SLICE]:
                example = build_example(one, clicks.get(one.offer), wait_ms=self._wait_ms)
                clicked += example.is_clicked
                learner.learn(example)
            await asyncio.sleep(0)
        return clicked

    def _failed(self) -> None:
        self.failures += 1
        self._forget()

    def _forget(self) -> None:
        self._learner = self._learned_at = self._published = None
        self.version = 0
