"""The HTTP client for platforms: bounded in time and size; the token goes into a header, which is not logged."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import httpx

from adloom import VERSION
from adloom.sync.providers.meta import MetaAnswer
from adloom.sync.providers.protocol import ProviderUnavailableError

CONNECT_SECONDS_MAX: Final = 10.0
ANSWER_SECONDS_MAX: Final = 60.0
BODY_BYTES_MAX: Final = 32 * 1024 * 1024


class HttpClient:
    """Sends GET requests, and follows no redirects: the token is for one host."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

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
    timeout = httpx.Timeout(ANSWER_SECONDS_MAX, connect=CONNECT_SECONDS_MAX)
    agent = {"User-Agent": f"adloom/{VERSION}"}
    async with httpx.AsyncClient(timeout=timeout, headers=agent, follow_redirects=False) as client:
        yield HttpClient(client)
