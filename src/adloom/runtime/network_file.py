"""A file of networks, one a line, as operators and clouds write them down; `#` begins a comment."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path


class NetworkFileError(Exception):
    """A file that cannot be read, or the line of it that is no network."""


def networks_in(path: Path) -> tuple[IPv4Network | IPv6Network, ...]:
    """Read the networks of a file; an address by itself is one too."""
    try:
        # Some editors begin a file with a mark of its encoding.
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise NetworkFileError(f"it cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise NetworkFileError(f"it is no text: {error}") from error
    texts = [(number, line.partition("#")[0].strip()) for number, line in enumerate(lines, 1)]
    return tuple(_network(text, number) for number, text in texts if text)


def _network(text: str, number: int) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise NetworkFileError(f"line {number} is {text!r}") from error
