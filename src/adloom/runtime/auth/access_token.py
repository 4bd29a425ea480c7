"""Access tokens: JSON Web Tokens that we sign.

No function here logs anything, and no error repeats what was shown.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

import jwt
import msgspec

from adloom.core.caller import ACCOUNT_ROLES, Caller, Role
from adloom.core.errors import UnauthenticatedError
from adloom.core.ids import SystemIds
from adloom.runtime.settings import TokenSettings

if TYPE_CHECKING:
    from jwt.types import Options

ALGORITHM: Final = "HS256"
REQUIRED_CLAIMS: Final = ("sub", "role", "iat", "exp", "iss")
DEFAULT_TOKENS: Final = TokenSettings()

_SIGNATURE_ONLY: Final["Options"] = {
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
    "verify_aud": False,
    "verify_iss": False,
}
_INVALID_TOKEN = "The access token is not valid: log in again."  # noqa: S105 - a sentence, not a token


class _Claims(msgspec.Struct, frozen=True):
    sub: str
    role: Role
    iat: int
    exp: int
    jti: UUID
    account: UUID | None = None
    sid: UUID | None = None
    epoch: int = 0


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says that we signed; whether it still holds is another question."""

    caller: Caller
    id: UUID
    issued_at: datetime
    expires_at: datetime
    log_in_id: UUID | None = None  # The log-in that it came from, where it was one.
    epoch: int = 0

    @property
    def user_id(self) -> UUID | None:
        """The person that it was signed for; None for machines and the command line."""
        try:
            return UUID(self.caller.subject)
        except ValueError:
            return None


def issue_access_token(  # noqa: PLR0913 - what a token says
    secret: str,
    caller: Caller,
    *,
    now: datetime,
    lifetime: timedelta,
    tokens: TokenSettings = DEFAULT_TOKENS,
    log_in_id: UUID | None = None,
    epoch: int = 0,
) -> str:
    claims: dict[str, str | int] = {
        "iss": tokens.issuer,
        "sub": caller.subject,
        "role": caller.role.value,
        "iat": int(now.timestamp()),
        "exp": int((now + lifetime).timestamp()),
        "jti": str(SystemIds().make()),
        "epoch": epoch,
    }
    if tokens.audience is not None:
        claims["aud"] = tokens.audience
    if caller.account_id is not None:
        claims["account"] = str(caller.account_id)
    if log_in_id is not None:
        claims["sid"] = str(log_in_id)
    return jwt.encode(claims, secret, algorithm=ALGORITHM)


def verify_access_token(
    secret: str, token: str, *, now: datetime, tokens: TokenSettings = DEFAULT_TOKENS
) -> AccessToken:
    """Return what a token says, or raise UnauthenticatedError; older secrets are tried in turn."""
    for older in tokens.older_secrets:
        if not _is_signed(secret, token):
            secret = older
    try:
        # Time is checked below against `now`: the library would ask the machine's clock.
        payload = jwt.decode(
            token,
            secret,
            algorithms=[ALGORITHM],
            issuer=tokens.issuer,
            audience=tokens.audience,
            options={
                "require": [*REQUIRED_CLAIMS, *(() if tokens.audience is None else ("aud",))],
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
            },
        )
        claims = msgspec.convert(payload, _Claims)
    except (jwt.InvalidTokenError, msgspec.ValidationError) as error:
        raise UnauthenticatedError(_INVALID_TOKEN) from error
    if now.timestamp() >= claims.exp:
        raise UnauthenticatedError("The access token has expired: refresh it or log in again.")
    if (claims.account is not None) != (claims.role in ACCOUNT_ROLES):
        raise UnauthenticatedError(_INVALID_TOKEN)
    return AccessToken(
        caller=Caller(subject=claims.sub, role=claims.role, account_id=claims.account),
        id=claims.jti,
        issued_at=datetime.fromtimestamp(claims.iat, UTC),
        expires_at=datetime.fromtimestamp(claims.exp, UTC),
        log_in_id=claims.sid,
        epoch=claims.epoch,
    )


def _is_signed(secret: str, token: str) -> bool:
    try:
        jwt.decode(token, secret, algorithms=[ALGORITHM], options=_SIGNATURE_ONLY)
    except jwt.InvalidSignatureError:
        return False
    except jwt.InvalidTokenError:
        return True  # Refused for another reason, whatever the secret.
    return True
