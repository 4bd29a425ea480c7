"""Rebuilds the frequency counts beside those in use, and swaps them in one moment.

Every valid impression of a user is a row of the event tables. So a new generation is summed up from the rows, as of
the cursor of the tables, follows the log from there, and takes over. A rebuild that ends before that has changed
nothing; the next one cleans up. Rows past their retention are gone: a lifetime begins with the oldest row then.
"""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta
from typing import Final, cast
from uuid import UUID

from adloom.core.ids import digest_user
from adloom.core.progress import ProgressListener, SilentProgress
from adloom.events.followers.counted_store import CountedStore
from adloom.events.followers.fence import ERASURES, ExpectedValue, FencedScript, read_text
from adloom.events.frequency import rebuild_store
from adloom.events.frequency.capped_store import CappedBannerStore
from adloom.events.frequency.counts import (
    BUILDING,
    FIRST_GENERATION,
    GENERATION,
    GENERATIONS,
    make_cursor_key,
    make_generation_prefix,
    make_rebuilt_key,
)
from adloom.events.frequency.projection import COUNT, FrequencyProjection, Generation, pack_counts
from adloom.events.frequency.windows import find_live_start
from adloom.events.log.event import LogEntry, UnreadableEntryError, decode_event, parse_entry_id
from adloom.events.ports import CursorMovedError, DecodedEntry
from adloom.events.rebuild.log_scanner import LogScanner
from adloom.events.rebuild.rebuild import RebuildRefusedError
from adloom.events.tables.store import EVENT_TABLES
from adloom.runtime.postgres import Pool, read_snapshot
from adloom.runtime.valkey import Valkey, raise_if_away

READ_MAX: Final = 1_000  # Entries of the log at once.
KEYS_A_SCAN: Final = 1_000
_ID_CHARACTERS: Final = 36
CLOCKS_DIFFER: Final = timedelta(minutes=1)  # Between the processes of one installation.
OVERTAKEN: Final = "Another replay of `frequency` was begun: this one has ended, and changed nothing."

TAKE_OVER: Final = """
redis.call('SET', ARGV[first], redis.call('GET', ARGV[first + 1]))
redis.call('DEL', KEYS[2])
"""


class FrequencyRebuild:
    """One replay of the projection `frequency`."""

    def __init__(
        self, pool: Pool, valkey: Valkey, log_scanner: LogScanner, *, progress: ProgressListener | None = None
    ) -> None:
        self._pool = pool
        self._valkey = valkey
        self._log = log_scanner
        self._progress = progress or SilentProgress()
        self._count = FencedScript(valkey, COUNT)
        self._take_over = FencedScript(valkey, TAKE_OVER)

    async def run(self, *, now: datetime) -> int:
        """Build a generation and swap it in; return the number of impressions of users it begins with."""
        generation = await self._begin()
        await self._delete_generations(keep={generation.name, _get_replaced(generation)})
        shown = await self._sum_up(generation, now)
        self._progress.begin("Following the ledger")
        await self._catch_up(generation)
        self._progress.begin("Swapping the counts")
        await self._swap_in(generation, now)
        await self._delete_generations(keep={generation.name})
        return shown

    async def _begin(self) -> Generation:
        with raise_if_away():
            name = str(await self._valkey.incr(GENERATIONS))
            pointer = await read_text(self._valkey, GENERATION)
            await self._valkey.set(BUILDING, name)
        return Generation(name, [ExpectedValue(GENERATION, pointer), ExpectedValue(BUILDING, name)])

    async def _sum_up(self, generation: Generation, now: datetime) -> int:
        """Count the rows, and put the cursor where the rows are."""
        self._progress.begin("Counting the rows of users")
        fences = [ExpectedValue(BUILDING, generation.name)]
        shown = 0
        async with read_snapshot(self._pool) as connection:
            cursor = await rebuild_store.read_cursor(connection, EVENT_TABLES)
            async for rows in rebuild_store.sum_all_shown(connection, live_since=find_live_start(now)):
                _check(await self._count.run(fences, generation.name, [pack_counts(generation.name, rows)]))
                times = sum(row.times for row in rows)
                shown += times
                self._progress.advance(times)
        with raise_if_away():
            await self._valkey.set(make_cursor_key(generation.name), cursor)
        return shown

    async def _catch_up(self, generation: Generation) -> None:
        """Count what the tables have applied meanwhile."""
        projection = FrequencyProjection(
            self._valkey, CountedStore(self._pool), CappedBannerStore(self._pool).find, building=generation
        )
        cursor = await projection.read_cursor()
        while entries := await self._read_applied(cursor):
            records = [record for entry in entries if (record := _decode(entry))]
            try:
                await projection.commit(records, after=cursor, cursor=entries[-1].id)
            except CursorMovedError as error:
                raise RebuildRefusedError(OVERTAKEN) from error
            cursor = entries[-1].id
            self._progress.advance(len(entries))

    async def _read_applied(self, cursor: str) -> Sequence[LogEntry]:
        entries = await self._log.read(f"({cursor}", "+", count_max=READ_MAX)
        async with read_snapshot(self._pool) as connection:
            until = parse_entry_id(await rebuild_store.read_cursor(connection, EVENT_TABLES))
        return [entry for entry in entries if parse_entry_id(entry.id) <= until]

    async def _swap_in(self, generation: Generation, began_at: datetime) -> None:
        """Swap the generation in: without users erased meanwhile, and with everything that the old one counted.

        A worker that has counted the last entry in the old one waits for the next entry, so whatever is missing
        here would be missing until then.
        """
        old_cursor = make_cursor_key(_get_replaced(generation))
        refused_by: str | None = ERASURES
        while refused_by in {ERASURES, old_cursor}:
            with raise_if_away():
                before = [
                    ExpectedValue(key, await read_text(self._valkey, key)) for key in (ERASURES, old_cursor)
                ]
            await self._catch_up(generation)
            await self._erase_users(generation, began_at)
            keys = [make_rebuilt_key(generation.name), make_cursor_key(generation.name)]
            refused_by = await self._take_over.run([*generation.expected, *before], generation.name, keys)
        _check(refused_by)

    async def _erase_users(self, generation: Generation, began_at: datetime) -> None:
        async with read_snapshot(self._pool) as connection:
            digests = await rebuild_store.find_erased(connection, began_at - CLOCKS_DIFFER)
        if not digests:
            return
        # Only the keys have ids: of erased users nothing but digests is kept.
        place = len(make_generation_prefix(generation.name))
        with raise_if_away():
            async for keys in self._scan_keys(generation.name):
                if gone := [key for key in keys if _digest_key(key[place:]) in digests]:
                    await self._valkey.unlink(*gone)

    async def _delete_generations(self, *, keep: set[str]) -> None:
        """Delete all generations but some: those replaced, and those never finished."""
        with raise_if_away():
            async for keys in self._scan_keys():
                gone = [key for key in keys if key.split(b":")[2].decode() not in keep]
                if gone:
                    await self._valkey.unlink(*gone)

    async def _scan_keys(self, generation: str = "[0-9]*") -> AsyncGenerator[list[bytes]]:
        place = 0
        while True:
            # The stubs know every protocol version and decoding; ours answers bytes.
            place, keys = cast(
                "tuple[int, list[bytes]]",
                await self._valkey.scan(
                    place, match=f"{make_generation_prefix(generation)}*", count=KEYS_A_SCAN
                ),
            )
            yield keys
            if place == 0:
                return


def _check(refused_by: str | None) -> None:
    if refused_by is not None:
        raise RebuildRefusedError(OVERTAKEN)


def _get_replaced(generation: Generation) -> str:
    [pointer, *_] = generation.expected
    return pointer.value or FIRST_GENERATION


def _digest_key(rest: bytes) -> bytes | None:
    """Return the digest of the user of a key, which its rest begins with; some keys have none."""
    try:
        return digest_user(UUID(rest[:_ID_CHARACTERS].decode()))
    except ValueError:
        return None


def _decode(entry: LogEntry) -> DecodedEntry | None:
    """Decode an entry; None for one that is unreadable or redelivered to one projection."""
    try:
        return DecodedEntry(entry.id, decode_event(entry.data))
    except UnreadableEntryError:
        return None
