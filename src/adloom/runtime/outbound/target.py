"""Where a URL leads, read once: what is checked is what is connected to."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urljoin

import httpx
import msgspec

from adloom.runtime.outbound.failure import FailureKind, OutboundError
from adloom.runtime.outbound.settings import LocalHost

URL_CHARACTERS_MAX: Final = 2048
PORTS: Final = {"http": 80, "https": 443}


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A request's URL in parts; `url` is how the site itself writes it, `scheme` and `port` are what we connect by."""

    url: str
    scheme: str
    host: str
    port: int
    path: bytes
    host_header: bytes


def read_target(url: str, local_hosts: Mapping[str, LocalHost]) -> Target:
    """Parse a URL from outside, or raise what is wrong with it."""
    if len(url) > URL_CHARACTERS_MAX:
        raise _make_refused_error(f"A URL has at most {URL_CHARACTERS_MAX} characters")
    if "\\" in url or any(character <= " " or character == "\x7f" for character in url):
        raise _make_refused_error("A URL has neither spaces nor backslashes")
    try:
        parts = httpx.URL(url)
        host = parts.raw_host.decode("ascii").rstrip(".")
    except (httpx.InvalidURL, ValueError) as error:
        raise _make_refused_error("This is no URL") from error
    if parts.scheme not in PORTS:
        raise _make_refused_error("Only http and https are fetched")
    if parts.userinfo:
        raise _make_refused_error("A URL with a user or password is not fetched")
    if not host or _is_ambiguous_number(host):
        raise _make_refused_error("The URL names no host")
    port = parts.port or PORTS[parts.scheme]
    local = local_hosts.get(host)
    if port not in PORTS.values() and (local is None or port != local.port):
        raise _make_refused_error("Only the ports 80 and 443 are fetched")
    return Target(
        url=str(parts.copy_with(fragment=None)),
        scheme=parts.scheme if local is None else "http",
        host=host,
        port=port if local is None else local.port,
        path=parts.raw_path,
        host_header=parts.netloc,
    )


def join(base: str, location: str) -> str:
    """Return where a `Location` leads; its bytes are read as UTF-8, as browsers do."""
    try:
        return urljoin(base, location.strip().encode("latin-1").decode("utf-8"))
    except ValueError as error:
        raise _make_refused_error("The redirect names no URL") from error


def _is_ambiguous_number(host: str) -> bool:
    """Tell `0x7f.1`, `2130706433` and `127.1`: some programs read them as addresses, others as names."""
    if ":" in host:
        return False
    labels = host.split(".")
    is_number = labels[-1].isdigit() or labels[-1].startswith("0x")
    is_plain_address = len(labels) == 4 and all(  # noqa: PLR2004 - parts of an IPv4 address
        label.isdigit() and str(int(label)) == label for label in labels
    )
    return is_number and not is_plain_address


def _make_refused_error(reason: str) -> OutboundError:
    return OutboundError(FailureKind.URL_REFUSED, f"{reason}.")
