"""What log-ins are made of: tokens and how long they last, and what people show to get them."""

from typing import Annotated, Final
from urllib.parse import urlsplit
from uuid import UUID

import msgspec

from adloom.core.caller import ACCOUNT_ROLES, Role
from adloom.core.setting import (
    Secret,
    SecretValueError,
    SettingsError,
    SettingValueError,
    Variable,
    parse_switch,
    parse_within,
)
from adloom.runtime.outbound.address import is_this_machine

EXPECTED: Final = (
    "word=role pairs separated by commas, like ad-admins=admin,shop=advertiser:ID with the id of an advertiser"
    " or publisher"
)
SECRET_CHARACTERS_MIN: Final = 32


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
    is_secure = parts.scheme == "https" or (parts.scheme == "http" and is_this_machine(host))
    if not host or not is_secure or parts.query or parts.fragment:
        raise SettingValueError("the https address of an OpenID provider, without a query")
    return text


def _parse_roles(text: str) -> tuple[Role, ...]:
    roles: list[Role] = []
    for word in filter(None, (word.strip() for word in text.split(","))):
        try:
            roles.append(Role(word))
        except ValueError:
            raise SettingValueError(f"roles separated by commas, of {', '.join(Role)}", word) from None
    return tuple(roles)


def parse_secrets(text: str) -> tuple[Secret, ...]:
    secrets = tuple(Secret(word.strip()) for word in text.split(",") if word.strip())
    if any(len(secret) < SECRET_CHARACTERS_MIN for secret in secrets):
        raise SecretValueError(f"needs at least {SECRET_CHARACTERS_MIN} characters for each secret.")
    return secrets


class TokenSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What access tokens say of themselves, and how long log-ins last."""

    issuer: Annotated[str, Variable("JWT_ISSUER")] = "adloom"
    audience: Annotated[str | None, Variable("JWT_AUDIENCE")] = None
    # Accepted too: what processes that have the other secret have signed.
    older_secrets: Annotated[tuple[Secret, ...], Variable("JWT_OLDER_SECRETS", parse_secrets)] = ()
    access_minutes: Annotated[int, Variable("JWT_ACCESS_TOKEN_MINUTES", parse_within(1, 1_440))] = 15
    refresh_days: Annotated[int, Variable("JWT_REFRESH_TOKEN_DAYS", parse_within(1, 365))] = 7
    # Of a log-in as a whole, however often it is refreshed.
    log_in_days: Annotated[int, Variable("ADLOOM_LOG_IN_DAYS", parse_within(1, 3_650))] = 30


class OidcSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The provider of single sign-on, and how its words become roles."""

    issuer: Annotated[str | None, Variable("ADLOOM_OIDC_ISSUER", parse_issuer)] = None
    client_id: Annotated[str | None, Variable("ADLOOM_OIDC_CLIENT_ID")] = None
    client_secret: Annotated[Secret | None, Variable("ADLOOM_OIDC_CLIENT_SECRET", Secret)] = None
    name: Annotated[str | None, Variable("ADLOOM_OIDC_NAME")] = None
    scopes: Annotated[str, Variable("ADLOOM_OIDC_SCOPES")] = "openid email profile"
    role_claim: Annotated[str | None, Variable("ADLOOM_OIDC_ROLE_CLAIM")] = None
    role_map: Annotated[tuple[RoleGrant, ...], Variable("ADLOOM_OIDC_ROLE_MAP", parse_grants)] = ()

    def __post_init__(self) -> None:
        if (self.issuer is None) != (self.client_id is None):
            raise SettingsError("ADLOOM_OIDC_ISSUER and ADLOOM_OIDC_CLIENT_ID are set together, or neither.")
        if (self.role_claim is None) != (not self.role_map):
            raise SettingsError(
                "ADLOOM_OIDC_ROLE_CLAIM and ADLOOM_OIDC_ROLE_MAP are set together, or neither."
            )

    def find_name(self) -> str:
        """Return what people call the provider: as set, or its host."""
        return self.name or urlsplit(self.issuer or "").hostname or "the provider"


class LogInSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What people show to log in."""

    second_factor_roles: Annotated[
        tuple[Role, ...], Variable("ADLOOM_REQUIRE_SECOND_FACTOR", _parse_roles)
    ] = ()
    takes_passwords: Annotated[bool, Variable("ADLOOM_PASSWORD_LOG_IN", parse_switch)] = True
    oidc: OidcSettings = OidcSettings()

    def __post_init__(self) -> None:
        if not self.takes_passwords and self.oidc.issuer is None:
            raise SettingsError(
                "ADLOOM_PASSWORD_LOG_IN is off: set ADLOOM_OIDC_ISSUER, or nobody can log in."
            )
