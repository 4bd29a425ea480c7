"""Fetches what a URL of a stranger names, and cannot be turned against our own network.

Only public addresses, also after a redirect: a host is resolved once, and never again by a lower layer. No cookies, no credentials; a bound on time, redirects, headers,
body and compression. Each failure has a name.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, cast

import h11
import httpcore
import httpx
import msgspec

from adloom.runtime.outbound.address import Address, find_refusal
from adloom.runtime.outbound.decompress import ACCEPTED_ENCODINGS, BoundedBody
from adloom.runtime.outbound.failure import FailureKind, OutboundError
from adloom.runtime.outbound.settings import LocalHost, OutboundSettings
from adloom.runtime.outbound.target import Target, join, read_target

ADDRESSES_TRIED_MAX: Final = 4
CONNECT_SECONDS_MAX: Final = 3.0  # To one address: the next one must have its turn within the time for all.

# A name server of a stranger may be as slow as it likes, and nothing ends a look-up early. So these threads are not the
# loop's, which passwords, uploads and exports need; while all are busy, look-ups wait until their time is over.
LOOK_UPS_AT_ONCE_MAX: Final = 16
_LOOK_UPS: Final = ThreadPoolExecutor(LOOK_UPS_AT_ONCE_MAX, thread_name_prefix="dns")

Resolve = Callable[[str], Awaitable[Sequence[Address]]]


async def resolve(host: str) -> Sequence[Address]:
    """Ask the system's resolver for all addresses of a host."""
    look_up = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_LOOK_UPS, look_up)
    return [ip_address(entry[4][0]) for entry in found]


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Opens connections for httpcore, to public addresses and local hosts only."""

    def __init__(
        self,
        local_hosts: Mapping[str, LocalHost],
        *,
        resolve: Resolve = resolve,
        dial: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._local_hosts = local_hosts
        self._resolve = resolve
        self._dial = dial or cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        local = self._local_hosts.get(host)
        addresses = [local.address] if local is not None else await self._find_public(host)
        seconds = min(timeout or CONNECT_SECONDS_MAX, CONNECT_SECONDS_MAX)
        last: Exception | None = None
        for address in addresses[:ADDRESSES_TRIED_MAX]:
            try:
                return await self._dial.connect_tcp(address, port, seconds, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last = error
        raise OutboundError(FailureKind.NOT_REACHED, f"{host} does not take connections.") from last

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _find_public(self, host: str) -> list[str]:
        """Resolve a host; one address that is not public refuses all: such an answer is an attack or a mistake."""
        try:
            addresses = [ip_address(host)]
        except ValueError:
            addresses = await self._look_up(host)
        for address in addresses:
            if reason := find_refusal(address):
                message = f"{host} is at {address}, which is no public address ({reason})."
                raise OutboundError(FailureKind.ADDRESS_REFUSED, message)
        return [str(address) for address in dict.fromkeys(addresses)]

    async def _look_up(self, host: str) -> list[Address]:
        try:
            addresses = list(await self._resolve(host))
        except (OSError, ValueError, UnicodeError) as error:
            raise OutboundError(FailureKind.NOT_FOUND, f"{host} is not known to DNS.") from error
        if not addresses:
            raise OutboundError(FailureKind.NOT_FOUND, f"{host} has no address.")
        return addresses


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
