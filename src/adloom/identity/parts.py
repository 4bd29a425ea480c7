"""The parts of identity that a control plane is made of."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import httpx
import msgspec

from adloom.core.clock import Clock
from adloom.core.ids import IdSource
from adloom.identity.attempt_limiter import SharedAttemptLimiter
from adloom.identity.authenticate import HeaderAuthenticator
from adloom.identity.console_sessions import ConsoleSessions
from adloom.identity.link.choose_password import PasswordLinks
from adloom.identity.second_factor.second_factors import (
    ATTEMPTS_AT_ONCE_MAX,
    ATTEMPTS_PER_MINUTE,
    SecondFactors,
)
from adloom.identity.security_record import RepeatedEvents
from adloom.identity.sessions import UserSessions
from adloom.identity.single_sign_on.provider import OidcProvider
from adloom.identity.single_sign_on.sign_on import CALLBACK, SingleSignOn
from adloom.resource.accounts import AccountRegistry
from adloom.runtime.auth.passwords import Passwords
from adloom.runtime.encryption import SecretCipher
from adloom.runtime.postgres import Pool
from adloom.runtime.settings import ControlSettings
from adloom.runtime.valkey import Valkey

# E-mails to one address, for people who have forgotten the password.
MAILS_AT_ONCE_MAX: Final = 3
MAILS_PER_MINUTE: Final = 1
PROVIDER_SECONDS_MAX: Final = 5.0  # For each step of a question to the provider of single sign-on.


class IdentityParts(msgspec.Struct, frozen=True, kw_only=True):
    """Who may log in and how, and how requests are authenticated."""

    passwords: Passwords
    sessions: UserSessions
    second_factors: SecondFactors
    console_sessions: ConsoleSessions
    password_links: PasswordLinks
    forgotten_limiter: SharedAttemptLimiter
    authenticator: HeaderAuthenticator
    single_sign_on: SingleSignOn | None


@asynccontextmanager
async def open_identity(  # noqa: PLR0913 - what it is made of
    pool: Pool,
    valkey: Valkey,
    settings: ControlSettings,
    *,
    clock: Clock,
    ids: IdSource,
    passwords: Passwords | None,
) -> AsyncGenerator[IdentityParts]:
    """Make the parts, and close at the end what talks to the provider."""
    passwords = passwords or Passwords()
    record = RepeatedEvents(pool)
    make_attempt_limiter = partial(SharedAttemptLimiter, valkey, secret=settings.jwt_secret)
    second_factors = SecondFactors(
        pool,
        SecretCipher(settings.sealing_secrets) if settings.sealing_secrets else None,
        frozenset(settings.log_in.second_factor_roles),
        make_attempt_limiter("codes", at_once_max=ATTEMPTS_AT_ONCE_MAX, per_minute=ATTEMPTS_PER_MINUTE),
    )
    sessions = UserSessions(
        pool,
        jwt_secret=settings.jwt_secret,
        passwords=passwords,
        ids=ids,
        record=record,
        tokens=settings.tokens,
        second_factors=second_factors,
        attempts=make_attempt_limiter("passwords"),
        takes_passwords=settings.log_in.takes_passwords,
    )
    async with _open_single_sign_on(pool, settings, ids=ids, record=record) as single_sign_on:
        await second_factors.end_log_ins_without(clock.now())
        yield IdentityParts(
            passwords=passwords,
            sessions=sessions,
            second_factors=second_factors,
            console_sessions=ConsoleSessions(pool, sessions, second_factors, jwt_secret=settings.jwt_secret),
            password_links=PasswordLinks(pool, passwords, takes_passwords=settings.log_in.takes_passwords),
            forgotten_limiter=make_attempt_limiter(
                "mails", at_once_max=MAILS_AT_ONCE_MAX, per_minute=MAILS_PER_MINUTE
            ),
            authenticator=HeaderAuthenticator(
                pool,
                jwt_secret=settings.jwt_secret,
                clock=clock,
                accounts=AccountRegistry(pool, clock),
                record=record,
                tokens=settings.tokens,
            ),
            single_sign_on=single_sign_on,
        )


@asynccontextmanager
async def _open_single_sign_on(
    pool: Pool, settings: ControlSettings, *, ids: IdSource, record: RepeatedEvents
) -> AsyncGenerator[SingleSignOn | None]:
    oidc = settings.log_in.oidc
    if oidc.issuer is None:
        # No client without a provider: loading certificates takes longer than all else here.
        yield None
        return
    async with httpx.AsyncClient(timeout=PROVIDER_SECONDS_MAX) as client:
        yield SingleSignOn(
            pool,
            OidcProvider(oidc, client),
            oidc,
            jwt_secret=settings.jwt_secret,
            ids=ids,
            redirect_uri=f"{settings.public_url}{CALLBACK}",
            record=record,
        )
