"""The projection `learning`: stores valid impressions of auctions until their clicks are known, each once.

It follows the auctions, which follow the event tables, so the context of the auction and the validity of the
impression can be looked up. A click is learned when its impression's time is over, not before: a model that learns
clicks at once and the rest half an hour later believes that everybody clicks every ad.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from adloom.events.ctr.pending import MILLIS, ExampleSampler
from adloom.events.ctr.store import LearningStore
from adloom.events.log.entry import parse_entry_id
from adloom.events.ports import BatchResult, DecodedEntry

BATCH_MAX: Final = 2_000


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
        """Store the impressions of a batch as pending, and move the cursor."""
        found = await self._store.find_impressions(records)
        now_ms = parse_entry_id(cursor)[0]
        taken = self._sampler.sample(found, now_ms=now_ms)
        last_ms = max((one.seen_ms for one in taken), default=0)
        due_at = datetime.fromtimestamp(last_ms / MILLIS, UTC) + self._wait
        await self._store.add_pending(taken, due_at=due_at, after=after, cursor=cursor)
        return BatchResult(counted=len(taken), dropped=len(found) - len(taken))
