"""Connections to Valkey, and subscriptions."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from weakref import WeakKeyDictionary

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
from adloom.runtime.loops import compute_wait
from adloom.runtime.process.wait_for import mend_wait_for

mend_wait_for()

CONNECT_SECONDS_MAX = 5.0
ANSWER_SECONDS_MAX = 5.0

Valkey = Redis
T = TypeVar("T")

# What a call raises when the server is away, or does not answer as it should.
VALKEY_AWAY: Final = (RedisError, OSError)
ANYTHING_AWAY: Final = (UnavailableError, *VALKEY_AWAY)
NO_ANSWER: Final = "Valkey does not answer"


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
        # Not the driver's name: it looks its version up for each connection, which takes a millisecond.
        "driver_info": None,
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
def raise_if_away(message: str = NO_ANSWER) -> Generator[None]:
    """Raise UnavailableError for whatever keeps Valkey from answering."""
    try:
        yield
    except VALKEY_AWAY as error:
        raise make_away_error(error, message) from error


def make_away_error(error: Exception, message: str = NO_ANSWER) -> UnavailableError:
    return UnavailableError(f"{message}: {error!r}")


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
    """Receives the messages on one channel; those sent while the connection is broken are lost.

    `on_start` is called whenever the subscription starts, or starts again: earlier messages are not known. All subscriptions
    of a client share a connection: separate ones would each send their own pings.
    """

    def __init__(
        self,
        valkey: Valkey,
        channel: str,
        *,
        on_message: Callable[[bytes], None],
        on_start: Callable[[], None],
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._valkey = valkey
        self.channel = channel
        self.on_message = on_message
        self.on_start = on_start
        self.quiet_seconds = quiet_seconds
        self.is_listening = False

    async def run(self, stop: asyncio.Event) -> None:
        connection = _subscribed.get(self._valkey)
        if connection is None:
            connection = _subscribed[self._valkey] = _SubscribedConnection(self._valkey)
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await connection.add(self)
            await asyncio.wait([connection.listening, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            await connection.remove(self)
        if connection.listening.done() and not connection.listening.cancelled():
            connection.listening.result()


class _SubscribedConnection:
    """The connection for the subscriptions of a client, from the first until the last has ended."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._subscriptions: list[Subscription] = []
        self._pubsub: PubSub | None = None
        self._asked: set[str] = set()
        self._confirmed: set[str] = set()
        self._asking = asyncio.Lock()
        self.listening = asyncio.ensure_future(self._listen())

    async def add(self, subscription: Subscription) -> None:
        self._subscriptions.append(subscription)
        if subscription.channel in self._confirmed:
            self._begin(subscription.channel)
        await self._try_to_ask()

    async def remove(self, subscription: Subscription) -> None:
        self._subscriptions.remove(subscription)
        subscription.is_listening = False
        if self._subscriptions:
            await self._try_to_ask()
            return
        if _subscribed.get(self._valkey) is self:
            del _subscribed[self._valkey]
        # The driver loses a cancellation that meets a connection which is just breaking.
        while not self.listening.done():
            self.listening.cancel()
            await asyncio.wait([self.listening], timeout=CANCEL_AGAIN_SECONDS)

    async def _listen(self) -> None:
        is_told = False
        while True:
            try:
                async with self._valkey.pubsub() as pubsub:
                    try:
                        await self._listen_to(pubsub)
                    finally:
                        is_told &= self._pubsub is None
                        self._forget()
            except VALKEY_AWAY as error:
                # Once: it is tried five times a second.
                if not is_told:
                    log.warning("subscription_interrupted", channels=self._list_channels(), error=repr(error))
                is_told = True
                await asyncio.sleep(RETRY_SECONDS)

    async def _listen_to(self, pubsub: PubSub) -> None:
        async with self._asking:
            await self._ask(pubsub)
            self._pubsub = pubsub  # Not earlier: another call would connect it, and wait as long.
        await self._try_to_ask()  # For calls that came meanwhile.
        while True:
            self._take(await self._wait_for_next(pubsub))

    def _forget(self) -> None:
        """Forget a connection before it is closed: a later call would open it again."""
        self._pubsub = None
        self._asked.clear()
        self._confirmed.clear()
        for one in self._subscriptions:
            one.is_listening = False

    def _list_channels(self) -> list[str]:
        return sorted({one.channel for one in self._subscriptions})

    async def _try_to_ask(self) -> None:
        is_connected = self._pubsub is not None
        if not is_connected:
            return
        async with self._asking:
            if self._pubsub is not None:  # It may have been lost while we waited.
                with suppress(
                    *VALKEY_AWAY
                ):  # The listening task finds it broken too, and subscribes to all again.
                    await self._ask(self._pubsub)

    async def _ask(self, pubsub: PubSub) -> None:
        """Subscribe to the channels that are wanted and not asked for, and the other way round."""
        wanted = {one.channel for one in self._subscriptions}
        # In an order that is the same in every run of the simulation.
        new, gone = sorted(wanted - self._asked), sorted(self._asked - wanted)
        self._asked = wanted
        self._confirmed.difference_update(gone)
        if new:
            await pubsub.subscribe(*new)
        if gone:
            await pubsub.unsubscribe(*gone)

    def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":
            channel = message["channel"].decode()
            for one in self._subscriptions:
                one.is_listening &= one.channel != channel  # The driver may have connected again.
            self._begin(channel)
        elif message["type"] == "message":
            channel, data = message["channel"].decode(), cast("bytes", message["data"])
            for one in [one for one in self._subscriptions if one.channel == channel]:
                _call(one, lambda one=one: one.on_message(data))

    def _begin(self, channel: str) -> None:
        self._confirmed |= {channel} & self._asked
        for one in self._subscriptions:
            if one.channel == channel and not one.is_listening:
                one.is_listening = True
                _call(one, one.on_start)

    async def _wait_for_next(self, pubsub: PubSub) -> dict[str, Any]:
        """Wait for a message; where none comes for a while, an answer of the server's will do."""
        seconds = min((one.quiet_seconds for one in self._subscriptions), default=QUIET_SECONDS)
        # The stubs know every decoding.
        message = cast("dict[str, Any] | None", await pubsub.get_message(timeout=compute_wait(seconds)))
        if message is None:
            await pubsub.ping()
            message = cast("dict[str, Any] | None", await pubsub.get_message(timeout=seconds))
        if message is None:
            raise TimeoutError("Valkey does not answer.")
        return message


_subscribed: Final[WeakKeyDictionary[Valkey, _SubscribedConnection]] = WeakKeyDictionary()


def _call(subscription: Subscription, tell: Callable[[], None]) -> None:
    try:
        tell()
    except Exception:
        # A bad message must not stop the next one.
        log.exception("subscription_message_failed", channel=subscription.channel)
