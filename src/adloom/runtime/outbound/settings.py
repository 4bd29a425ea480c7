"""Settings of requests to hosts that strangers name."""

from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Annotated, Final

import msgspec

from adloom.core.public_paths import name_neutrally
from adloom.core.setting import SettingValueError, Variable

CRAWLER_PATH: Final = "/crawler"  # On delivery: what the crawler is, and how to keep it away.
USER_AGENT: Final = "AdloomBot/1.0 (+{page})"
DELIVERY_URL_DEFAULT: Final = "http://127.0.0.1:8080"
USER_AGENT_CHARACTERS_MAX: Final = 200


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


def parse_user_agent(text: str) -> str:
    if not text.isascii() or not text.isprintable() or len(text) > USER_AGENT_CHARACTERS_MAX:
        raise SettingValueError(f"at most {USER_AGENT_CHARACTERS_MAX} letters, digits and signs of ASCII")
    if "/" not in text or "://" not in text:
        raise SettingValueError(
            "a name and an address where site owners can ask, like MyBot/1.0 (+https://…)"
        )
    return text


def _choose_default_user_agent(variables: Mapping[str, str]) -> str:
    """Link to delivery, the one address of an installation that is public anyway."""
    url = (variables.get("ADLOOM_DELIVERY_URL") or DELIVERY_URL_DEFAULT).rstrip("/")
    prefix = (variables.get("ADLOOM_PUBLIC_PREFIX") or "").rstrip("/")
    return USER_AGENT.format(page=f"{url}{name_neutrally(CRAWLER_PATH, prefix)}")


class OutboundSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Our user agent, and the hosts that are found on our own network."""

    user_agent: Annotated[
        str, Variable("ADLOOM_CRAWL_USER_AGENT", parse_user_agent, _choose_default_user_agent)
    ] = USER_AGENT.format(page=f"{DELIVERY_URL_DEFAULT}{CRAWLER_PATH}")
    local_hosts: Annotated[Mapping[str, LocalHost], Variable("ADLOOM_CRAWL_RESOLVE", parse_local_hosts)] = (
        MappingProxyType({})
    )
