"""Where a request of the control plane comes from."""

from ipaddress import ip_address, ip_network
from typing import Final

import msgspec
from starlette.requests import HTTPConnection

from adloom.runtime.http.client_address import find_client_address

# What the record of security events keeps of an address: enough to tell networks apart.
IPV4_PREFIX_LENGTH: Final = 24
IPV6_PREFIX_LENGTH: Final = 48
UNKNOWN: Final = "unknown"


class ClientOrigin(msgspec.Struct, frozen=True):
    """The network of a client, and the request's id."""

    network: str = UNKNOWN
    request_id: str | None = None


def find_address(request: HTTPConnection) -> str:
    """Return the client's address, behind trusted proxies too."""
    peer = request.client.host if request.client else None
    forwarded_for = request.headers.getlist("x-forwarded-for")
    return find_client_address(peer, forwarded_for, request.app.state.trusted_proxies)


def find_origin(request: HTTPConnection) -> ClientOrigin:
    return ClientOrigin(widen(find_address(request)), getattr(request.state, "request_id", None))


def widen(address: str) -> str:
    """Return the network of an address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return UNKNOWN
    length = IPV4_PREFIX_LENGTH if parsed.version == 4 else IPV6_PREFIX_LENGTH  # noqa: PLR2004 - the name of the protocol
    return str(ip_network((parsed, length), strict=False))
