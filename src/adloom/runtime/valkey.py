"""Connections to Valkey, subscriptions, and locks."""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.credentials import CredentialProvider
from redis.exceptions import (
    ConnectionError,  # noqa: A004 - the driver's, which is not the system's
    RedisError,
)

from adloom.core.errors import UnavailableError
from adloom.runtime.failover.sentinel import is_sentinel, make_sentinel_client

CONNECT_SECONDS_MAX = 5.0
ANSWER_SECONDS_MAX = 5.0

Valkey = Redis
T = TypeVar("T")

# What a call raises when the server is away, or does not answer as it should.
VALKEY_AWAY: Final = (RedisError, OSError)


@asynccontextmanager
async def open_valkey(
    redis_url: str, *, answer_seconds_max: float = ANSWER_SECONDS_MAX
) -> AsyncGenerator[Valkey]:
    """Open a client that connects when it is first used, and close it at the end.

    It does not repeat a command by itself: only the caller knows whether that is safe.
    """
    client = make_client(redis_url, answer_seconds_max=answer_seconds_max)
    try:
        yield client
    finally:
        await client.aclose()


def make_client(
    redis_url: str, *, answer_seconds_max: float = ANSWER_SECONDS_MAX, is_decoding: bool = False
) -> Valkey:
    url, credentials = _split_password_file(redis_url)
    options: dict[str, Any] = {
        "credential_provider": credentials,
        "decode_responses": is_decoding,
        "socket_connect_timeout": min(CONNECT_SECONDS_MAX, answer_seconds_max),
        "socket_timeout": answer_seconds_max,
        "retry": Retry(NoBackoff(), 0),
        "health_check_interval": 30,
    }
    if is_sentinel(url):
        return make_sentinel_client(url, **options)
    return Redis.from_url(url.replace("valkey", "redis", 1) if url.startswith("valkey") else url, **options)


class PasswordFile(CredentialProvider):
    """Reads a password for every connection, so that it can be changed without a stop."""

    def __init__(self, file: Path, user: str | None) -> None:
        self._file = file
        self._user = user

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        password = self._file.read_text(encoding="utf-8").strip()
        return (password,) if self._user is None else (self._user, password)


def _split_password_file(url: str) -> tuple[str, PasswordFile | None]:
    """Take `password_file` out of the query of an address, and the user before it."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    file = query.pop("password_file", None)
    if file is None:
        return url, None
    place = parts.netloc.rpartition("@")[2]
    user = None if not parts.username else unquote(parts.username)
    return parts._replace(netloc=place, query=urlencode(query)).geturl(), PasswordFile(Path(file), user)


async def retry_if_disconnected(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call that may safely be made twice; repeat it once if its connection was dead.

    A pooled connection to a server that was restarted is found dead only when it is used.
    """
    try:
        return await call()
    except ConnectionError:
        return await call()


@contextmanager
def unavailable_when_away(message: str = "Valkey does not answer") -> Generator[None]:
    """Raise UnavailableError for whatever keeps Valkey from answering."""
    try:
        yield
    except VALKEY_AWAY as error:
        raise UnavailableError(f"{message}: {error!r}") from error


async def is_reachable(client: Valkey) -> bool:
    try:
        return bool(await retry_if_disconnected(lambda: client.ping()))  # noqa: PLW0108 - the stubs know the call only
    except VALKEY_AWAY:
        return False


# A subscription that hears nothing for so long asks, and has as long to hear an answer. Otherwise one whose
# other end is gone without a word would listen for ever.
QUIET_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 0.2
CANCEL_AGAIN_SECONDS: Final = 0.1

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Subscription:
    """Hears what is said on one channel; what is said while the connection is broken is lost.

    `began` is called whenever listening has begun, or begun again: what was said before is not known.
    """

    def __init__(
        self,
        valkey: Valkey,
        channel: str,
        *,
        heard: Callable[[bytes], None],
        began: Callable[[], None],
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._valkey = valkey
        self._channel = channel
        self._heard = heard
        self._began = began
        self._quiet_seconds = quiet_seconds

    async def run(self, stop: asyncio.Event) -> None:
        listening = asyncio.ensure_future(self._listen())
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait([listening, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            # The driver loses a cancellation that meets a connection which is just breaking.
            while not listening.done():
                listening.cancel()
                await asyncio.wait([listening], timeout=CANCEL_AGAIN_SECONDS)
        if not listening.cancelled():
            listening.result()

    async def _listen(self) -> None:
        is_told = False
        while True:
            try:
                async with self._valkey.pubsub() as subscription:
                    await subscription.subscribe(self._channel)
                    is_told = False
                    while True:
                        self._take(await self._wait_for_next(subscription))
            except VALKEY_AWAY as error:
                # Once: a worker has seven of them, and each tries five times a second.
                if not is_told:
                    log.warning("subscription_interrupted", channel=self._channel, error=repr(error))
                is_told = True
                await asyncio.sleep(RETRY_SECONDS)

    def _take(self, message: dict[str, Any]) -> None:
        try:
            if message["type"] == "message":
                self._heard(cast("bytes", message["data"]))
            elif message["type"] == "subscribe":
                self._began()
        except Exception:
            # A bad message must not stop the next one.
            log.exception("subscription_message_failed", channel=self._channel)

    async def _wait_for_next(self, subscription: PubSub) -> dict[str, Any]:
        message = await self._wait_for_message(subscription)
        if message is None:
            await subscription.ping()
            message = await self._wait_for_message(subscription)
        if message is None:
            raise TimeoutError("Nothing is heard of Valkey.")
        return message

    async def _wait_for_message(self, subscription: PubSub) -> dict[str, Any] | None:
        # The stubs know every decoding.
        return cast("dict[str, Any] | None", await subscription.get_message(timeout=self._quiet_seconds))


LEASE: Final = timedelta(seconds=5)

# A lock that was renewed with another so recently is not renewed by a command of its own. At worst that and the time
# between two renewals, 1.5 s, pass without one: half a lease. So long one waits for the other's answer, too.
RENEWED_SECONDS: Final = 1.0

# A worker that restarts under the same name takes its old lock back, once: two that live under one name would
# otherwise take it from each other for ever. The first answer is 2 for a lock that was taken now, the others are those
# of the locks that are renewed with it.
ACQUIRE_SCRIPT: Final = """
local key, consumer, holder, millis, may_take_back = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function renew(one, its_holder, its_millis)
    if redis.call('GET', one) ~= its_holder then return 0 end
    return redis.call('PEXPIRE', one, its_millis)
end

local function acquire()
    if renew(key, holder, millis) == 1 then return 1 end
    local has = redis.call('GET', key)
    local is_own = may_take_back == '1' and has and string.sub(has, 1, #consumer + 1) == consumer .. ' '
    if has and not is_own then return 0 end
    redis.call('SET', key, holder, 'PX', millis)
    return 2
end

local answers = {acquire()}
for i = 2, #KEYS do answers[i] = renew(KEYS[i], ARGV[2 * i + 1], ARGV[2 * i + 2]) end
return answers
"""
RELEASE_SCRIPT: Final = (
    "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 1"
)


class HeldLocks:
    """The locks that one worker holds: the command that renews one of them renews all."""

    def __init__(self, *, renewed_seconds: float = RENEWED_SECONDS) -> None:
        self._renewed_seconds = renewed_seconds
        self._renewed_at: dict[ValkeyLock, float] = {}
        self._answered: dict[
            ValkeyLock, asyncio.Event
        ] = {}  # Of the command that renews a lock with another.

    def is_renewed(self, lock: "ValkeyLock", now: float) -> bool:
        """Return whether a lock was renewed just now, with another or by itself."""
        return now - self._renewed_at.get(lock, -math.inf) < self._renewed_seconds

    @contextmanager
    def renew_others(self, lock: "ValkeyLock") -> Generator[list["ValkeyLock"]]:
        """Yield what else the command for a lock renews; who asks for those meanwhile waits for its answer."""
        answered = asyncio.Event()
        others = [other for other in self._renewed_at if other is not lock]
        self._answered |= dict.fromkeys(others, answered)
        try:
            yield others
        finally:
            answered.set()

    async def wait_renewed(self, lock: "ValkeyLock") -> None:
        """Wait for the answer to a command that renews a lock with another, if there is one.

        Not for long: its connection may be dead, and what that takes to find out is as long as a lease.
        """
        if lock in self._answered:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._renewed_seconds):
                    await self._answered[lock].wait()

    def add(self, lock: "ValkeyLock", now: float) -> None:
        self._renewed_at[lock] = now

    def note_renewed(self, lock: "ValkeyLock", at: float) -> None:
        """Note when a lock was renewed with another, unless it was released meanwhile."""
        if lock in self._renewed_at:
            self._renewed_at[lock] = at

    def remove(self, lock: "ValkeyLock") -> None:
        self._renewed_at.pop(lock, None)
        self._answered.pop(lock, None)


class ValkeyLock:
    """One worker's claim to a lock, for as long as it renews its lease; UnavailableError when Valkey is away.

    It keeps two workers from doing the same work. It does not protect data: whoever writes fences itself out by
    a cursor or a version, because an owner that was thought dead may come back.
    """

    def __init__(  # noqa: PLR0913 - the last is for tests
        self,
        valkey: Valkey,
        key: str,
        *,
        consumer: str,
        incarnation: str,
        held: HeldLocks | None = None,
        lease: timedelta = LEASE,
    ) -> None:
        self.key = key
        self.holder = f"{consumer} {incarnation}"
        self.lease_millis = int(lease.total_seconds() * 1000)
        self.was_just_taken = False
        self._consumer = consumer
        self._held = held or HeldLocks(renewed_seconds=0)
        self._may_take_back = True
        self._acquire = valkey.register_script(ACQUIRE_SCRIPT)
        self._release = valkey.register_script(RELEASE_SCRIPT)

    async def acquire(self) -> bool:
        """Take the lock or renew its lease; return whether it is ours."""
        self.was_just_taken = False
        await self._held.wait_renewed(self)
        now = asyncio.get_running_loop().time()
        if self._held.is_renewed(self, now):
            return True
        with self._held.renew_others(self) as others:
            taken, *renewed = await self._ask(others)
            for other, is_renewed in zip(others, renewed, strict=True):
                self._held.note_renewed(other, now if is_renewed else -math.inf)
        self._may_take_back = False
        self.was_just_taken = taken > 1
        if taken:
            self._held.add(self, now)
        else:
            self._held.remove(self)
        return taken > 0

    def doubt(self) -> None:
        """Ask Valkey at the next `acquire`, however recently the lock was renewed: another seems to have it."""
        self._held.note_renewed(self, -math.inf)

    async def _ask(self, others: Sequence["ValkeyLock"]) -> list[int]:
        keys = [self.key, *(other.key for other in others)]
        arguments = [self._consumer, self.holder, self.lease_millis, int(self._may_take_back)]
        for other in others:
            arguments += (other.holder, other.lease_millis)
        with unavailable_when_away(f"It is not known who holds {self.key}"):
            return cast("list[int]", await retry_if_disconnected(lambda: self._acquire(keys, arguments)))

    async def release(self) -> None:
        self._held.remove(self)
        with unavailable_when_away(f"It is not known who holds {self.key}"):
            await self._release([self.key], [self.holder])
