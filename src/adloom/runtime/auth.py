"""Secrets that people and machines show: access tokens, opaque tokens, API keys, passwords.

None of these functions logs anything, and no error repeats what was shown.
"""

import asyncio
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar
from uuid import UUID

import argon2
import msgspec

from adloom.core.caller import ACCOUNT_ROLES, Caller, Role
from adloom.core.errors import UnauthenticatedError, UnavailableError
from adloom.core.ids import SystemIds
from adloom.runtime.secret_hash import API_KEY_PREFIX
from adloom.runtime.settings import TokenSettings

if TYPE_CHECKING:
    from jwt.types import Options

P = ParamSpec("P")
R = TypeVar("R")

ALGORITHM: Final = "HS256"
REQUIRED_CLAIMS: Final = ("sub", "role", "iat", "exp", "iss")
DEFAULT_TOKENS: Final = TokenSettings()
API_KEY_HINT_LENGTH: Final = 12
RANDOM_BYTES: Final = 32
# A hash takes 64 MiB and a core for a while: more at once would starve everything else.
PASSWORDS_AT_ONCE_MAX: Final = 2
PASSWORDS_WAITING_MAX: Final = 100  # Some seconds of work; beyond, we answer 503 at once.

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
    import jwt  # noqa: PLC0415 - 3 MB that a supervisor, which only makes passwords, does not need

    claims: dict[str, str | int] = {
        "iss": tokens.issuer,
        "sub": caller.subject,
        "role": caller.role.value,
        "iat": int(now.timestamp()),
        "exp": int((now + lifetime).timestamp()),
        "jti": str(SystemIds().new()),
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
    import jwt  # noqa: PLC0415 - see above

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
    import jwt  # noqa: PLC0415 - see above

    try:
        jwt.decode(token, secret, algorithms=[ALGORITHM], options=_SIGNATURE_ONLY)
    except jwt.InvalidSignatureError:
        return False
    except jwt.InvalidTokenError:
        return True  # Refused for another reason, whatever the secret.
    return True


def make_opaque_token() -> str:
    """Make a random token; only its hash is stored."""
    return secrets.token_urlsafe(RANDOM_BYTES)


def make_api_key() -> str:
    """Make a key for a machine; it is shown once, and only its hash is stored."""
    return API_KEY_PREFIX + make_opaque_token()


def write_api_key_hint(key: str) -> str:
    """Return the beginning of a key, by which its owner recognises it."""
    return key[:API_KEY_HINT_LENGTH]


class Passwords:
    """Hashes and checks passwords with Argon2, in threads, because that is slow on purpose."""

    def __init__(self, hasher: argon2.PasswordHasher | None = None) -> None:
        self._hasher = hasher or argon2.PasswordHasher()
        self._turns = asyncio.Semaphore(PASSWORDS_AT_ONCE_MAX)
        self._waiting = 0
        self._decoy: str | None = None

    async def hash(self, password: str) -> str:
        return await self._run_in_turn(self._hasher.hash, password)

    async def matches(self, password: str, password_hash: str | None) -> bool:
        """Compare a password with a hash.

        Without a hash a decoy is checked: the same work, so that the time of an answer
        does not show which users exist.
        """
        if self._decoy is None:
            self._decoy = await self.hash(make_opaque_token())
        is_right = await self._run_in_turn(self._verify, password_hash or self._decoy, password)
        return is_right and password_hash is not None

    async def _run_in_turn(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        if self._waiting >= PASSWORDS_WAITING_MAX:
            raise UnavailableError("Too many people log in at once; please try again in a moment.")
        self._waiting += 1
        try:
            async with self._turns:
                return await asyncio.to_thread(work, *args, **kwargs)
        finally:
            self._waiting -= 1

    def _verify(self, password_hash: str, password: str) -> bool:
        try:
            return self._hasher.verify(password_hash, password)
        except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
            return False
