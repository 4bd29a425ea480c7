"""Connects to the addresses that were checked: a host is resolved once, and never again by a lower layer."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final, cast

import httpcore

from adloom.runtime.outbound.address import Address, find_refusal
from adloom.runtime.outbound.failure import FailureKind, OutboundError
from adloom.runtime.outbound.settings import LocalHost

ADDRESSES_TRIED_MAX: Final = 4
CONNECT_SECONDS_MAX: Final = 3.0  # To one address: the next one must have its turn within the time for all.

Resolve = Callable[[str], Awaitable[Sequence[Address]]]


async def resolve(host: str) -> Sequence[Address]:
    """Ask the system's resolver for all addresses of a host."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
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
