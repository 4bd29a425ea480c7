"""Asking platforms over HTTP: bounded in time and size, and with the token where no log looks."""

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
    """Asks with GET, and never follows an answer elsewhere: the token is for one host."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def get(self, url: str, parameters: Mapping[str, str], token: str) -> MetaAnswer:
        """Ask; raises ProviderUnavailableError where there is no answer, or none in time, or too long a one."""
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
                named = {name.lower(): value for name, value in response.headers.items()}
                return MetaAnswer(response.status_code, named, bytes(body))
        except (httpx.HTTPError, TimeoutError) as error:
            # Not its words: they may name an address, and addresses tell what was asked.
            raise ProviderUnavailableError(
                f"The platform cannot be reached: {type(error).__name__}."
            ) from None


@asynccontextmanager
async def open_http_client() -> AsyncGenerator[HttpClient]:
    """Open a client, and close it at the end."""
    timeout = httpx.Timeout(ANSWER_SECONDS_MAX, connect=CONNECT_SECONDS_MAX)
    agent = {"User-Agent": f"adloom/{VERSION}"}
    async with httpx.AsyncClient(timeout=timeout, headers=agent, follow_redirects=False) as client:
        yield HttpClient(client)
