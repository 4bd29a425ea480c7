"""Hosts that are found at an address of our own instead of by DNS: for development and tests."""

# pure

from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType

import msgspec

from adloom.core.setting import SettingValueError


class LocalHost(msgspec.Struct, frozen=True):
    """Where a named host is, over plain http; the one kind of address that may be private."""

    address: str
    port: int


def parse_local_hosts(text: str) -> Mapping[str, LocalHost]:
    """Parse `a.test=127.0.0.1:9001,b.test=127.0.0.1:9002`."""
    hosts: dict[str, LocalHost] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, place = word.partition("=")
        address, _, port = place.rpartition(":")
        found = _read_place(address, port)
        if not name or found is None:
            expected = "hosts with an address and a port like a.test=127.0.0.1:9001, separated by commas"
            raise SettingValueError(expected, word)
        hosts[name.lower()] = found
    return MappingProxyType(hosts)


def _read_place(address: str, port: str) -> LocalHost | None:
    try:
        place = LocalHost(str(ip_address(address.strip("[]"))), int(port))
    except ValueError:
        return None
    return place if 0 < place.port < 2**16 else None
