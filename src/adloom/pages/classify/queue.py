"""The queue of pages to classify: a bounded Valkey stream with one group of consumers."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from enum import Enum
from hashlib import blake2b
from typing import Final, cast

import msgspec
import structlog
from redis.exceptions import ResponseError

from adloom.pages.classify.request import ClassifyRequest
from adloom.runtime.valkey import Valkey, raise_if_away, retry_if_disconnected

STREAM: Final = "adloom:classify"
GROUP: Final = "classifiers"
FIELD: Final = "r"

# Entries are about 8 KB. Beyond this a reader's tag is asked to come again later.
LENGTH_MAX: Final = 1_000
# A crawler waits at this length: a page that a reader asks for is then never behind more than a second or two.
CRAWL_LENGTH_MAX: Final = 50

# A classifier that has an entry for so long without a word is dead.
CLAIM_SECONDS: Final = 30.0

PUT_SCRIPT: Final = """
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[2]) then return 'full' end
if KEYS[2] and not redis.call('SET', KEYS[2], '1', 'NX', 'EX', ARGV[3]) then return 'waits' end
redis.call('XADD', KEYS[1], '*', 'r', ARGV[1])
return 'put'
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(ClassifyRequest).decode


class PutResult(Enum):
    """Whether a request was put: it may wait already, or there is no room."""

    PUT = b"put"
    WAITS = b"waits"
    FULL = b"full"


class QueuedRequest(msgspec.Struct, frozen=True):
    """A request of the queue, and how often a classifier has taken it."""

    entry_id: str
    request: ClassifyRequest
    deliveries: int = 1


class ClassifyQueue:
    """Puts requests, hands each to one consumer, and forgets those that are done; UnavailableError without Valkey."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._put = valkey.register_script(PUT_SCRIPT)

    async def put(self, request: ClassifyRequest, *, length_max: int = LENGTH_MAX) -> bool:
        """Put a request; False where the queue is full."""
        return await self._run_put([STREAM], [_encode(request), length_max]) is PutResult.PUT

    async def put_once(self, request: ClassifyRequest, *, lifetime: timedelta) -> PutResult:
        """Put a request unless one of the same page was put this way within its lifetime, by any process."""
        keys = [STREAM, _name_page(request)]
        return await self._run_put(keys, [_encode(request), LENGTH_MAX, int(lifetime.total_seconds())])

    async def count_waiting(self) -> int:
        """Count the requests that wait or are being worked on."""
        with raise_if_away("The queue of pages does not answer"):
            return int(await retry_if_disconnected(lambda: self._valkey.xlen(STREAM)))

    async def read(self, consumer: str, *, count_max: int, wait_seconds: float) -> list[QueuedRequest]:
        """Take new requests for a consumer; wait a little for the first where there are none."""
        wait_millis = max(1, int(wait_seconds * 1000))  # Zero would be for ever.
        with raise_if_away("The queue of pages does not answer"):
            try:
                answer = await self._read(consumer, ">", count_max, wait_millis)
            except ResponseError as error:
                if not str(error).startswith("NOGROUP"):
                    raise
                await self._create_group()
                answer = await self._read(consumer, ">", count_max, wait_millis)
        return await self._decode_all([(entry_id, fields, 1) for entry_id, fields in answer])

    async def claim(
        self, consumer: str, *, count_max: int, idle_seconds: float = CLAIM_SECONDS
    ) -> list[QueuedRequest]:
        """Take over what other consumers have left lying."""
        with raise_if_away("The queue of pages does not answer"):
            try:
                answer = await self._valkey.xautoclaim(
                    STREAM,
                    GROUP,
                    consumer,
                    min_idle_time=int(idle_seconds * 1000),
                    start_id="0-0",
                    count=count_max,
                )
            except ResponseError as error:
                if not str(error).startswith("NOGROUP"):
                    raise
                await self._create_group()
                return []
            rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", answer[1])
            return await self._decode_all(await self._count_deliveries(consumer, rows))

    async def resume(self, consumer: str, *, count_max: int) -> list[QueuedRequest]:
        """Take again what this consumer had when it was stopped."""
        with raise_if_away("The queue of pages does not answer"):
            await self._create_group()
            rows = await self._read(consumer, "0", count_max, None)
            return await self._decode_all(await self._count_deliveries(consumer, rows))

    async def keep(self, consumer: str, entry_ids: Sequence[str]) -> None:
        """Say that these are still being worked on, so that they are not claimed."""
        if not entry_ids:
            return
        with raise_if_away("The queue of pages does not answer"):
            await self._valkey.xclaim(STREAM, GROUP, consumer, 0, list(entry_ids), justid=True)

    async def acknowledge(self, entry_ids: Iterable[str]) -> None:
        """Forget requests that are done."""
        done = list(entry_ids)
        if not done:
            return
        with raise_if_away("The queue of pages does not answer"):
            async with self._valkey.pipeline(transaction=True) as at_once:
                at_once.xack(STREAM, GROUP, *done)
                at_once.xdel(STREAM, *done)
                await at_once.execute()

    async def _run_put(self, keys: list[str], values: list[bytes | int]) -> PutResult:
        with raise_if_away("The queue of pages does not answer"):
            # A request that is put twice costs a look at the page's content hash.
            return PutResult(await retry_if_disconnected(lambda: self._put(keys, values)))

    async def _create_group(self) -> None:
        try:
            await self._valkey.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    async def _read(
        self, consumer: str, after: str, count_max: int, wait_millis: int | None
    ) -> list[tuple[bytes, dict[bytes, bytes]]]:
        answer = await self._valkey.xreadgroup(
            GROUP, consumer, {STREAM: after}, count=count_max, block=wait_millis
        )
        # The stubs know every protocol version and decoding; ours answers pairs of bytes.
        streams = cast("list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]", answer or [])
        return [row for _, rows in streams for row in rows]

    async def _count_deliveries(
        self, consumer: str, rows: Sequence[tuple[bytes, dict[bytes, bytes]]]
    ) -> list[tuple[bytes, dict[bytes, bytes], int]]:
        if not rows:
            return []
        pending = await self._valkey.xpending_range(
            STREAM, GROUP, min=rows[0][0], max=rows[-1][0], count=len(rows), consumername=consumer
        )
        counts = {
            cast("bytes", one["message_id"]): int(cast("int", one["times_delivered"])) for one in pending
        }
        return [(entry_id, fields, counts.get(entry_id, 1)) for entry_id, fields in rows]

    async def _decode_all(self, rows: Sequence[tuple[bytes, dict[bytes, bytes], int]]) -> list[QueuedRequest]:
        """Decode entries; what cannot be read is of another version or of another program, and is dropped."""
        found: list[QueuedRequest] = []
        broken: list[str] = []
        for entry_id, fields, deliveries in rows:
            try:
                request = _decode(fields[FIELD.encode()])
            except (KeyError, msgspec.MsgspecError):
                broken.append(entry_id.decode())
            else:
                found.append(QueuedRequest(entry_id.decode(), request, deliveries))
        if broken:
            log.warning("classify_entries_dropped", entries=broken)
            await self.acknowledge(broken)
        return found


def _name_page(request: ClassifyRequest) -> str:
    digest = blake2b(request.url.encode(), digest_size=16).hexdigest()
    return f"adloom:classify:page:{request.site_id}:{digest}"
