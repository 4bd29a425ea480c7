"""Fetches what a URL of a stranger names, and cannot be turned against our own network.

Only public addresses, also after a redirect; no cookies, no credentials; a bound on time, redirects, headers,
body and compression. Each failure has a name.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, cast

import h11
import httpcore
import httpx
import msgspec

from adloom.runtime.outbound.connect import CheckedBackend
from adloom.runtime.outbound.decompress import ACCEPTED_ENCODINGS, BoundedBody
from adloom.runtime.outbound.failure import FailureKind, OutboundError
from adloom.runtime.outbound.settings import OutboundSettings
from adloom.runtime.outbound.target import Target, join, read_target

SECONDS_MAX: Final = 10.0
REDIRECTS_MAX: Final = 5
BODY_BYTES_MAX: Final = 2 * 2**20
CONNECTIONS_MAX: Final = 64
IDLE_CONNECTIONS_MAX: Final = 16
IDLE_SECONDS_MAX: Final = 5.0
REDIRECTS: Final = frozenset([301, 302, 303, 307, 308])
HEADERS_TOO_LARGE: Final = 431  # How h11 marks headers beyond its bound.

MayFollow = Callable[[str], str | None]
IsWanted = Callable[[Mapping[str, str]], bool]


class BodyLimit(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a body is read; `is_wanted` looks at the headers, and without it the whole body is."""

    bytes_max: int = BODY_BYTES_MAX
    is_cut_taken: bool = False
    is_wanted: IsWanted | None = None


WHOLE: Final = BodyLimit()


class OutboundResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An answer: the URL it came from after redirects, names of headers in lower case, the decompressed body."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes


class OutboundClient:
    """An HTTP client for hosts that strangers name."""

    def __init__(
        self,
        pool: httpcore.AsyncConnectionPool,
        settings: OutboundSettings,
        *,
        seconds_max: float = SECONDS_MAX,
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._seconds_max = seconds_max

    def is_local(self, host: str) -> bool:
        """Tell whether a host is named in the settings to be found at an address of our own."""
        return host in self._settings.local_hosts

    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        limit: BodyLimit = WHOLE,
        may_follow: MayFollow | None = None,
    ) -> OutboundResponse:
        """Fetch a URL, or raise an `OutboundError`.

        `may_follow` is asked for each redirect's URL, and returns why it is not followed. A body over
        the limit is a failure, unless its beginning is taken; one that is not wanted is empty.
        """
        try:
            async with asyncio.timeout(self._seconds_max):
                return await self._follow(url, headers or {}, limit, may_follow)
        except TimeoutError as error:
            message = f"The answer took longer than {self._seconds_max:g} seconds."
            raise OutboundError(FailureKind.TIMEOUT, message) from error
        except httpcore.TimeoutException as error:
            raise OutboundError(FailureKind.TIMEOUT, "The host did not answer in time.") from error
        except httpcore.ConnectError as error:
            raise _describe_connect_error(error) from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise _describe_protocol_error(error) from error

    async def _follow(
        self, url: str, headers: Mapping[str, str], limit: BodyLimit, may_follow: MayFollow | None
    ) -> OutboundResponse:
        target = read_target(url, self._settings.local_hosts)
        for _ in range(REDIRECTS_MAX + 1):
            response = await self._ask(target, headers, limit)
            location = response.headers.get("location")
            if response.status not in REDIRECTS or not location:
                return response
            target = read_target(join(target.url, location), self._settings.local_hosts)
            if may_follow is not None and (reason := may_follow(target.url)):
                raise OutboundError(FailureKind.REDIRECT_REFUSED, f"It redirects to {target.url}: {reason}.")
        raise OutboundError(FailureKind.TOO_MANY_REDIRECTS, f"It redirects more than {REDIRECTS_MAX} times.")

    async def _ask(self, target: Target, headers: Mapping[str, str], limit: BodyLimit) -> OutboundResponse:
        async with self._pool.stream(
            "GET",
            httpcore.URL(
                scheme=target.scheme, host=target.host.encode(), port=target.port, target=target.path
            ),
            headers=[
                (b"Host", target.host_header),
                (b"User-Agent", self._settings.user_agent.encode()),
                (b"Accept-Encoding", ACCEPTED_ENCODINGS.encode()),
                *((name.encode(), value.encode("latin-1", "ignore")) for name, value in headers.items()),
            ],
        ) as response:
            answered = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
            }
            is_read = not (response.status in REDIRECTS and "location" in answered) and (
                limit.is_wanted is None or limit.is_wanted(answered)
            )
            encoding = answered.get("content-encoding", "") if is_read else ""
            body = BoundedBody(encoding, bytes_max=limit.bytes_max)
            if is_read:
                await _read_body(response, body)
            if body.is_full and not limit.is_cut_taken:
                raise OutboundError(
                    FailureKind.BODY_TOO_LARGE, f"The answer has over {limit.bytes_max} bytes."
                )
            return OutboundResponse(url=target.url, status=response.status, headers=answered, body=body.body)


@asynccontextmanager
async def open_outbound(
    settings: OutboundSettings,
    *,
    backend: CheckedBackend | None = None,
    ssl_context: ssl.SSLContext | None = None,
    seconds_max: float = SECONDS_MAX,
) -> AsyncGenerator[OutboundClient]:
    """Open a client, and close its connections at the end."""
    async with httpcore.AsyncConnectionPool(
        ssl_context=ssl_context or httpx.create_ssl_context(trust_env=False),
        max_connections=CONNECTIONS_MAX,
        max_keepalive_connections=IDLE_CONNECTIONS_MAX,
        keepalive_expiry=IDLE_SECONDS_MAX,
        network_backend=backend or CheckedBackend(settings.local_hosts),
    ) as pool:
        yield OutboundClient(pool, settings, seconds_max=seconds_max)


async def _read_body(response: httpcore.Response, body: BoundedBody) -> None:
    chunks = cast("AsyncGenerator[bytes]", response.aiter_stream())
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            body.feed(chunk)
            if body.is_full:
                return
    body.finish()


def _describe_connect_error(error: Exception) -> OutboundError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return OutboundError(
                FailureKind.CERTIFICATE, f"Its certificate is not valid: {cause.verify_message}."
            )
        cause = cause.__cause__ or cause.__context__
    return OutboundError(FailureKind.NOT_REACHED, "The host does not take connections.")


def _describe_protocol_error(error: Exception) -> OutboundError:
    cause = error.__cause__ or error.__context__
    if isinstance(cause, h11.ProtocolError) and cause.error_status_hint == HEADERS_TOO_LARGE:
        return OutboundError(FailureKind.HEADERS_TOO_LARGE, "The answer's headers are too large.")
    return OutboundError(FailureKind.PROTOCOL, "The host closed the connection, or does not speak HTTP.")
