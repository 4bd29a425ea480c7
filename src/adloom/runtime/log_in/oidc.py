"""What the settings of single sign-on say: the provider's address, and which of its words give which role."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import msgspec

from adloom.core.caller import ACCOUNT_ROLES, Role
from adloom.core.setting import SettingValueError

EXPECTED: Final = (
    "word=role pairs separated by commas, like ad-admins=admin,shop=advertiser:ID with the id of an advertiser"
    " or publisher"
)


class RoleGrant(msgspec.Struct, frozen=True):
    """The role, and whom to act for, of people with a word in the claim."""

    word: str
    role: Role
    account_id: UUID | None = None

    def __str__(self) -> str:
        return f"{self.word}={self.role}" + (f":{self.account_id}" if self.account_id else "")


def parse_grants(text: str) -> tuple[RoleGrant, ...]:
    return tuple(_parse_grant(pair.strip()) for pair in text.split(",") if pair.strip())


def _parse_grant(pair: str) -> RoleGrant:
    word, _, target = pair.rpartition("=")
    name, _, account = target.partition(":")
    try:
        grant = RoleGrant(word.strip(), Role(name.strip()), UUID(account.strip()) if account else None)
    except ValueError:
        raise SettingValueError(EXPECTED, pair) from None
    if not grant.word or (grant.account_id is not None) != (grant.role in ACCOUNT_ROLES):
        raise SettingValueError(EXPECTED, pair)
    return grant


def parse_issuer(text: str) -> str:
    """Read the address of a provider: https, but for one on this machine."""
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    is_secure = parts.scheme == "https" or (parts.scheme == "http" and _is_this_machine(host))
    if not host or not is_secure or parts.query or parts.fragment:
        raise SettingValueError("the https address of an OpenID provider, without a query")
    return text


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
