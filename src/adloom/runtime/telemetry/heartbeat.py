"""Heartbeats: each process writes its figures to Valkey, so that any machine can list all of them.

Every second where ads are served, or every fourth while nothing changes; elsewhere every fourth.

In Valkey: one hash of processes, one of their settings, and one of request counts for each hour and minute.
"""

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, TypeVar, cast

import msgspec

from adloom import VERSION
from adloom.core.clock import Clock
from adloom.runtime.loops import PollLoop
from adloom.runtime.settings import Secret, Telemetry
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

PROCESSES: Final = "adloom:processes"
SETTINGS: Final = "adloom:processes:settings"
REQUESTS: Final = "requests"
FILLED: Final = "filled"
HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
RETENTION: Final = {HOUR: timedelta(days=8), MINUTE: timedelta(hours=3)}
GONE_AFTER: Final = timedelta(seconds=10)  # Without a heartbeat for this long a process counts as gone.
FORGOTTEN_AFTER: Final = timedelta(days=1)
INTERVAL_SECONDS: Final = 1.0
UNCHANGED_SECONDS: Final = 4.0  # For so long, figures that have not changed are not written again.
RATE_OVER: Final = 10  # Heartbeats: at few requests a single second says little.
# Settings do not change while a process lives; they are repeated for a Valkey that has lost them.
SETTINGS_EVERY: Final = 20
LAST_WRITE_SECONDS_MAX: Final = 0.5  # If Valkey is away when a process stops, it expires a little later.
MASK: Final = "…"
# Of the entries of the event log, as this version reads and writes them: raised when older versions cannot read what is
# written. A process writes the newest format that all can read; heartbeats of before have none.
LOG_FORMAT: Final = 1


class ShardReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has of the actors that several workers share."""

    held: tuple[int, ...]
    lag: dict[int, int]  # Messages that wait, by shard; shards where none waits are left out.
    fenced_writes: int  # Since the process started, and so is `moves`.
    moves: int
    is_connected: bool


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a moment; None where this kind of process has none."""

    requests: int = 0  # Since the process started, and so is `filled`.
    filled: int = 0
    index_version: int | None = None
    p50_seconds: float | None = None
    p99_seconds: float | None = None
    pending: int | None = None
    spool_bytes: int | None = None
    disk_free_bytes: int | None = None  # Where its spool is, and in an installation of one machine all data.
    shards: ShardReading | None = None
    weights_problem: str | None = None  # Why a worker does not use the weights in its settings.
    books_problem: str | None = None  # What the leading worker found wrong when it last compared the books.
    only_peer: str | None = None  # The private address that all events came from, if there is only one.
    unknown_slugs: dict[str, str] = {}  # That pages have asked for in the last hour, each with a host of one.


Moment = Annotated[datetime, msgspec.Meta(tz=True)]
DecodedT = TypeVar("DecodedT")


class ProcessHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A process, as it was a moment ago."""

    process: str
    kind: str
    host: str
    pid: int
    version: str
    started_at: Moment
    told_at: Moment
    requests_per_second: float
    reading: Reading
    log_format: int = 0

    @property
    def id(self) -> str:
        return f"{self.process}@{self.host}:{self.pid}"

    def is_alive(self, *, now: datetime) -> bool:
        return now - self.told_at < GONE_AFTER


class TrafficCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Ad requests of all processes in an hour or a minute, and how many were filled."""

    begins_at: datetime
    requests: int
    filled: int


class HeartbeatPublisher:
    """Writes the figures of this process, and adds what it served to the counts of all."""

    def __init__(  # noqa: PLR0913 - what processes differ in
        self,
        valkey: Valkey,
        clock: Clock,
        *,
        telemetry: Telemetry,
        settings: Mapping[str, str],
        read: Callable[[], Reading] = Reading,
        is_serving: bool = False,
    ) -> None:
        self._valkey = valkey
        self._clock = clock
        self._process = telemetry.process
        self._settings = msgspec.json.encode(dict(settings))
        self._read = read
        self._is_serving = is_serving
        self._host = socket.gethostname()
        self._started_at = clock.now()
        self._recent: deque[tuple[datetime, Reading]] = deque(maxlen=RATE_OVER)
        self._written: ProcessHeartbeat | None = None
        self._count = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Publish until stopped; then remove the process from the list."""
        publish, seconds = (
            (self.publish_if_due, INTERVAL_SECONDS) if self._is_serving else (self.publish, UNCHANGED_SECONDS)
        )
        # It goes on after any error: a heartbeat must never end the process that it describes.
        await PollLoop(publish, every_seconds=seconds, away=VALKEY_AWAY, name="heartbeat").run(stop)
        with contextlib.suppress(*VALKEY_AWAY):
            name = self._build_heartbeat(self._clock.now(), self._read()).id
            await self._valkey.hdel(PROCESSES, name)
            await self._valkey.hdel(SETTINGS, name)

    async def publish_if_due(self) -> None:
        """Publish what has changed, and else only now and then."""
        now, reading = self._clock.now(), self._read()
        heartbeat, written = self._build_heartbeat(now, reading), self._written
        if written is not None and now - written.told_at < timedelta(seconds=UNCHANGED_SECONDS):
            same = msgspec.structs.replace(heartbeat, told_at=written.told_at)
            if same == written:
                self._recent.append((now, reading))
                return
        await self._write(heartbeat)

    async def publish(self) -> None:
        await self._write(self._build_heartbeat(self._clock.now(), self._read()))

    async def _write(self, heartbeat: ProcessHeartbeat) -> None:
        now, reading = heartbeat.told_at, heartbeat.reading
        before = self._recent[-1][1] if self._recent else Reading()
        pipe = self._valkey.pipeline(transaction=False)
        pipe.hset(PROCESSES, heartbeat.id, msgspec.json.encode(heartbeat).decode())
        if self._count % SETTINGS_EVERY == 0:
            pipe.hset(SETTINGS, heartbeat.id, self._settings.decode())
        requests, filled = reading.requests - before.requests, reading.filled - before.filled
        if requests and self._is_serving:
            for step in (HOUR, MINUTE):
                key = name_traffic_key(round_time_down(now, step), step)
                pipe.hincrby(key, REQUESTS, requests)
                pipe.hincrby(key, FILLED, filled)
                pipe.expire(key, int(RETENTION[step].total_seconds()))
        await pipe.execute()
        self._recent.append((now, reading))
        self._written = heartbeat
        self._count += 1

    def _build_heartbeat(self, now: datetime, reading: Reading) -> ProcessHeartbeat:
        rate = 0.0
        if self._recent and (elapsed := (now - self._recent[0][0]).total_seconds()) > 0:
            rate = (reading.requests - self._recent[0][1].requests) / elapsed
        return ProcessHeartbeat(
            process=self._process,
            kind=self._process.partition("-")[0],
            host=self._host,
            pid=os.getpid(),
            version=VERSION,
            started_at=self._started_at,
            told_at=now,
            requests_per_second=round(rate, 2),
            reading=reading,
            log_format=LOG_FORMAT,
        )


@contextlib.asynccontextmanager
async def publish_meanwhile(publisher: HeartbeatPublisher) -> AsyncGenerator[None]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(publisher.run(stop))
        try:
            yield
        finally:
            stop.set()
            await asyncio.wait([task], timeout=LAST_WRITE_SECONDS_MAX)
            task.cancel()


class HeartbeatReader:
    """Reads the heartbeats and traffic of all processes."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def list_processes(self, *, now: datetime) -> Sequence[ProcessHeartbeat]:
        """Return the processes that are alive, sorted by name; entries of long gone ones are deleted."""
        alive: list[ProcessHeartbeat] = []
        for name, text in (await self._read_hash(PROCESSES)).items():
            heartbeat = _decode_if_readable(text, ProcessHeartbeat)
            if heartbeat is not None and heartbeat.is_alive(now=now):
                alive.append(heartbeat)
            elif heartbeat is None or now - heartbeat.told_at > FORGOTTEN_AFTER:
                for table in (PROCESSES, SETTINGS):
                    await cast("Awaitable[object]", self._valkey.hdel(table, cast("str", name)))
        return sorted(alive, key=lambda one: (one.process, one.host, one.pid))

    async def load_settings(self) -> Mapping[str, Mapping[str, str]]:
        """Return the settings of processes; what cannot be read is left out."""
        found = {
            name.decode("utf-8", "replace"): _decode_if_readable(text, dict[str, str])
            for name, text in (await self._read_hash(SETTINGS)).items()
        }
        return {name: settings for name, settings in found.items() if settings is not None}

    async def load_traffic(self, step: timedelta, *, count: int, now: datetime) -> Sequence[TrafficCounts]:
        """Return the counts of the last hours or minutes, the current one last."""
        last = round_time_down(now, step)
        begins = [last - step * back for back in range(count - 1, -1, -1)]
        pipe = self._valkey.pipeline(transaction=False)
        for at in begins:
            pipe.hmget(name_traffic_key(at, step), [REQUESTS, FILLED])
        answers = cast("list[list[bytes | None]]", await pipe.execute())
        return [
            TrafficCounts(begins_at=at, requests=int(requests or 0), filled=int(filled or 0))
            for at, (requests, filled) in zip(begins, answers, strict=True)
        ]

    async def _read_hash(self, key: str) -> Mapping[bytes, bytes]:
        return cast("Mapping[bytes, bytes]", await cast("Awaitable[object]", self._valkey.hgetall(key)))


def round_time_down(moment: datetime, step: timedelta) -> datetime:
    seconds = int(step.total_seconds())
    return datetime.fromtimestamp(int(moment.timestamp()) // seconds * seconds, UTC)


def name_traffic_key(begins_at: datetime, step: timedelta) -> str:
    return f"adloom:traffic:{int(step.total_seconds())}:{int(begins_at.timestamp())}"


def mask_settings(settings: msgspec.Struct) -> dict[str, str]:
    """Write settings as texts for people; secrets, and URLs that may carry some, are masked."""
    masked: dict[str, str] = {}
    for name, value in msgspec.structs.asdict(settings).items():
        if isinstance(value, msgspec.Struct):
            masked |= {f"{name}.{inner}": text for inner, text in mask_settings(value).items()}
        else:
            masked[name] = _mask(value)
    return masked


def _mask(value: Any) -> str:  # noqa: ANN401 - whatever a setting is
    if isinstance(value, Secret):
        return MASK if value else ""
    if isinstance(value, tuple | list):
        return ", ".join(_mask(one) for one in value)  # pyright: ignore[reportUnknownVariableType]  whatever it has
    if isinstance(value, bool):
        return "on" if value else "off"
    return "" if value is None else str(value)


def _decode_if_readable(text: bytes, wanted: type[DecodedT]) -> DecodedT | None:
    try:
        return msgspec.json.decode(text, type=wanted)
    except msgspec.DecodeError:  # Written by a version with another format.
        return None


FROZEN: Final = "adloom:frozen"
FROZEN_MAX: Final = 50
FROZEN_FOR: Final = timedelta(days=1)


class FrozenProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that gave no sign of life for too long, and was replaced."""

    process: str
    host: str
    silent_seconds: float
    at: Moment


async def record_frozen(valkey: Valkey, frozen: FrozenProcess) -> None:
    pipe = valkey.pipeline(transaction=True)
    pipe.rpush(FROZEN, msgspec.json.encode(frozen).decode())
    pipe.ltrim(FROZEN, -FROZEN_MAX, -1)
    pipe.expire(FROZEN, int(FROZEN_FOR.total_seconds()))
    await pipe.execute()


async def read_frozen(valkey: Valkey, *, now: datetime) -> list[FrozenProcess]:
    """Return those of the last day, the newest first."""
    texts = cast("list[bytes]", await cast("Awaitable[object]", valkey.lrange(FROZEN, 0, -1)))
    found: list[FrozenProcess] = []
    for text in reversed(texts):
        try:
            one = msgspec.json.decode(text, type=FrozenProcess)
        except msgspec.DecodeError:  # Written by a version with another format.
            continue
        if now - one.at < FROZEN_FOR:
            found.append(one)
    return found
