"""E-mails of reports that are sent because somebody asked, not because they are due; each is begun at most once, too."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.errors import RateLimitedError
from adloom.runtime.postgres import Pool

PAUSE: Final = timedelta(minutes=1)
PER_DAY_MAX: Final = 50  # Of one person.
DAY: Final = timedelta(days=1)
# The owner's row is locked: of two who ask at once, the second sees the first.
LOCK: Final = """
    SELECT it.id, it.owner_id FROM saved_reports AS it JOIN users AS owner ON owner.id = it.owner_id
     WHERE it.public_id = $1 FOR UPDATE OF owner
"""
ASKED: Final = """
    SELECT max(asked_at) FILTER (WHERE report_id = $1 AND failure IS NULL) AS last_at,
           count(*) AS number, min(asked_at) AS first_at
      FROM report_requests
     WHERE report_id IN (SELECT id FROM saved_reports WHERE owner_id = $2) AND asked_at > $3
"""
ASK: Final = "INSERT INTO report_requests (id, report_id, asked_at) VALUES ($1, $2, $3)"
BEGIN: Final = """
    UPDATE report_requests SET begun_at = $2, failure = NULL WHERE id = $1 AND begun_at IS NULL RETURNING true
"""
END: Final = "UPDATE report_requests SET sent_at = $2, failure = $3 WHERE id = $1"
GIVE_BACK: Final = "UPDATE report_requests SET begun_at = NULL, failure = $2 WHERE id = $1"
FAIL: Final = "UPDATE report_requests SET failure = $2 WHERE id = $1 AND begun_at IS NULL"
PRUNE: Final = "DELETE FROM report_requests WHERE asked_at < $1"


async def ask_for_sending(pool: Pool, request_id: UUID, report_id: UUID, now: datetime) -> None:
    """Note that somebody wants a report now; few at once, because each is an e-mail."""
    async with pool.acquire() as connection, connection.transaction():
        report = await connection.fetchrow(LOCK, report_id)
        if report is None:
            return  # Deleted meanwhile: nothing will be sent.
        asked = await connection.fetchrow(ASKED, report["id"], report["owner_id"], now - DAY)
        assert asked is not None, "an aggregate has a row"
        if asked["last_at"] is not None and asked["last_at"] > now - PAUSE:
            raise _make_too_soon_error("This report was sent a moment ago.", asked["last_at"] + PAUSE - now)
        if asked["number"] >= PER_DAY_MAX:
            said = f"You have had {PER_DAY_MAX} reports sent in a day."
            raise _make_too_soon_error(said, asked["first_at"] + DAY - now)
        await connection.execute(ASK, request_id, report["id"], now)


def _make_too_soon_error(reason: str, wait: timedelta) -> RateLimitedError:
    seconds = int(wait.total_seconds()) + 1
    return RateLimitedError(f"{reason} Try again in {seconds} seconds.", retry_after_seconds=seconds)


async def prune_requests(pool: Pool, before: datetime) -> None:
    await pool.execute(PRUNE, before)


class RequestedSending(msgspec.Struct, frozen=True):
    """What becomes of an e-mail that somebody asked for."""

    pool: Pool
    id: UUID

    @property
    def name(self) -> str:
        return self.id.hex

    async def begin(self, now: datetime) -> bool:
        """Take it; False where it was begun before."""
        return bool(await self.pool.fetchval(BEGIN, self.id, now))

    async def end(self, sent_at: datetime | None, failure: str | None) -> None:
        """Say what became of it, for good."""
        await self.pool.execute(END, self.id, sent_at, failure)

    async def give_back(self, failure: str) -> None:
        """Let another attempt begin, after one that has certainly not sent anything."""
        await self.pool.execute(GIVE_BACK, self.id, failure)

    async def record_failure(self, failure: str) -> None:
        """Say why it was not sent; it can still be begun."""
        await self.pool.execute(FAIL, self.id, failure)
