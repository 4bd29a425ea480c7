"""The HTTP client for platforms, and a request rate limit per account.

Requests are bounded in time and size; the token goes into a header, which is not logged.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import httpx

from adloom import VERSION
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.sync.providers.protocol import ProviderUnavailableError

Sleep = Callable[[float], Awaitable[None]]
Moment = Callable[[], float]

PAUSED: Final = "adloom:sync:paused:"  # And the account.


class RequestPace:
    """Keeps a minimum interval between the requests of an account, and the pauses that the platform asks for.

    With Valkey, all workers keep a pause. Time is the event loop's, which never goes back.
    """

    def __init__(
        self,
        requests_per_second: float,
        *,
        sleep: Sleep = asyncio.sleep,
        moment: Moment | None = None,
        valkey: Valkey | None = None,
    ) -> None:
        assert requests_per_second > 0, "a rate of zero would wait for ever"
        self._interval_seconds = 1 / requests_per_second
        self._sleep = sleep
        self._moment = moment
        self._valkey = valkey
        self._free_at: dict[str, float] = {}
        self._paused_until: dict[str, float] = {}

    async def wait(self, account: str) -> None:
        """Wait until this account may send its next request."""
        now = self._read_now()
        free_at = max(now, self._free_at.get(account, now))
        # Reserve the slot before waiting, so that the next caller queues behind this one.
        self._free_at[account] = free_at + self._interval_seconds
        if free_at > now:
            await self._sleep(free_at - now)

    def delay_next(self, account: str, length: timedelta) -> None:
        until = self._read_now() + length.total_seconds()
        self._free_at[account] = max(until, self._free_at.get(account, until))

    async def pause(self, account: str, length: timedelta) -> None:
        """Remember that an account must not be asked for a while."""
        self._paused_until[account] = self._read_now() + length.total_seconds()
        if self._valkey is not None:
            with suppress(*VALKEY_AWAY):
                await self._valkey.set(PAUSED + account, 1, px=length)

    async def find_pause(self, account: str) -> timedelta:
        """Return how long an account must not be asked, as far as this worker knows."""
        now = self._read_now()
        seconds = max(0.0, self._paused_until.get(account, now) - now)
        if not seconds and self._valkey is not None:
            with suppress(*VALKEY_AWAY):
                seconds = max(0, await self._valkey.pttl(PAUSED + account)) / 1000
        return timedelta(seconds=seconds)

    def _read_now(self) -> float:
        return (self._moment or asyncio.get_running_loop().time)()


CONNECT_SECONDS_MAX: Final = 10.0
ANSWER_SECONDS_MAX: Final = 60.0
BODY_BYTES_MAX: Final = 32 * 1024 * 1024


class MetaAnswer(NamedTuple):
    """Any HTTP answer of the platform; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpGetter(Protocol):
    """An HTTP client that can send GET requests with a token."""

    async def get(self, url: str, parameters: Mapping[str, str], token: str) -> MetaAnswer:
        """Raise ProviderUnavailableError if there is no answer, or it is too late or too long."""
        ...


class HttpClient:
    """Sends GET requests, and follows no redirects: the token is for one host."""

    def __init__(self, closing: AsyncExitStack) -> None:
        self._closing = closing

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        # With the first request: to read the certificates takes 70 ms and 2 MB, and few have such accounts.
        client = httpx.AsyncClient(
            timeout=httpx.Timeout(ANSWER_SECONDS_MAX, connect=CONNECT_SECONDS_MAX),
            headers={"User-Agent": f"adloom/{VERSION}"},
            follow_redirects=False,
        )
        self._closing.push_async_callback(client.aclose)
        return client

    async def get(self, url: str, parameters: Mapping[str, str], token: str) -> MetaAnswer:
        """Raise ProviderUnavailableError if there is no answer, or it is too late or too long."""
        headers = {"Authorization": f"Bearer {token}"}
        try:
            async with (
                asyncio.timeout(ANSWER_SECONDS_MAX),
                self._client.stream("GET", url, params=dict(parameters), headers=headers) as response,
            ):
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > BODY_BYTES_MAX:
                        raise ProviderUnavailableError("The answer of the platform is too long.")
                headers_by_name = {name.lower(): value for name, value in response.headers.items()}
                return MetaAnswer(response.status_code, headers_by_name, bytes(body))
        except (httpx.HTTPError, TimeoutError) as error:
            # Leave out its message: it may contain the URL, and with it what was asked.
            raise ProviderUnavailableError(
                f"The platform cannot be reached: {type(error).__name__}."
            ) from None


@asynccontextmanager
async def open_http_client() -> AsyncGenerator[HttpClient]:
    async with AsyncExitStack() as closing:
        yield HttpClient(closing)
