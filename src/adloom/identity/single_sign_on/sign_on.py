"""A log-in by the provider: there and back, and the account that follows from it."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.errors import ForbiddenError, UnauthenticatedError, ValidationFailedError
from adloom.core.ids import IdSource, UserId
from adloom.identity import store as users
from adloom.identity.account import store as people
from adloom.identity.account.changes import lock_with_admins, move_person
from adloom.identity.acting_for import check_acts_for
from adloom.identity.model import User
from adloom.identity.pending import read_pending, sign_pending
from adloom.identity.security_record import USER, RepeatedEvents, make_stranger, record_event
from adloom.identity.single_sign_on.claims import ProvenPerson, choose_grant, read_person
from adloom.identity.single_sign_on.provider import OidcProvider
from adloom.resource.audit.difference import describe_creation
from adloom.runtime.http.api.origin import ClientOrigin
from adloom.runtime.log_in_settings import OidcSettings, RoleGrant
from adloom.runtime.postgres import Connection, Pool

BY_SUBJECT: Final = "SELECT public_id FROM users WHERE oidc_issuer = $1 AND oidc_subject = $2"
BY_EMAIL: Final = "SELECT public_id FROM users WHERE lower(email) = lower($1)"
# An account that another subject of the provider has is not given away.
LINK: Final = """
    UPDATE users SET oidc_issuer = $2, oidc_subject = $3
     WHERE public_id = $1 AND (oidc_subject IS NULL OR oidc_issuer <> $2 OR oidc_subject = $3)
    RETURNING true
"""
PENDING: Final = "single sign-on"
CALLBACK: Final = "/console/sso/callback"
RANDOM_BYTES: Final = 32
ERROR_LENGTH_MAX: Final = 100
BEGUN_ELSEWHERE: Final = "This log-in was begun elsewhere, or took too long. Log in again."


class SingleSignOnRefusedError(ForbiddenError):
    """The provider knows the person, and there is no account for them here."""

    code = "SINGLE_SIGN_ON_REFUSED"


class BegunSignOn(msgspec.Struct, frozen=True):
    """The provider's address to open, and what the browser keeps until it comes back."""

    url: str
    pending: str


class SingleSignOn:
    """Log-ins by one provider."""

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        pool: Pool,
        provider: OidcProvider,
        settings: OidcSettings,
        *,
        jwt_secret: str,
        ids: IdSource,
        redirect_uri: str,
        record: RepeatedEvents,
    ) -> None:
        self.name = settings.find_name()
        self._pool = pool
        self._provider = provider
        self._settings = settings
        self._jwt_secret = jwt_secret
        self._ids = ids
        self._redirect_uri = redirect_uri
        self._record = record

    async def begin(self, goal: str, *, now: datetime) -> BegunSignOn:
        state, nonce, verifier = (secrets.token_urlsafe(RANDOM_BYTES) for _ in range(3))
        digest = hashlib.sha256(verifier.encode()).digest()
        url = await self._provider.make_url(
            redirect_uri=self._redirect_uri,
            state=state,
            nonce=nonce,
            challenge=base64.urlsafe_b64encode(digest).decode().rstrip("="),
            now=now,
        )
        kept = {"state": state, "nonce": nonce, "verifier": verifier, "goal": goal}
        return BegunSignOn(url, sign_pending(self._jwt_secret, PENDING, kept, now=now))

    async def finish(
        self, query: Mapping[str, str], pending: str, *, now: datetime, origin: ClientOrigin
    ) -> tuple[User, str]:
        """Return the user, and the page to open; raises where anything is not as it was begun."""
        kept = read_pending(self._jwt_secret, PENDING, pending, now=now)
        if not hmac.compare_digest(query.get("state", "").encode(), kept["state"].encode()):
            raise UnauthenticatedError(BEGUN_ELSEWHERE)
        if "error" in query or "code" not in query:
            said = query.get("error", "no code")[:ERROR_LENGTH_MAX]
            raise UnauthenticatedError(f"{self.name} did not log you in ({said}). Log in again.")
        tokens = await self._provider.exchange(
            query["code"], verifier=kept["verifier"], redirect_uri=self._redirect_uri, now=now
        )
        claims = await self._provider.verify(tokens.id_token, nonce=kept["nonce"], now=now)
        needed = {"email", self._settings.role_claim} - {None}
        if tokens.access_token is not None and not needed <= claims.keys():
            besides = await self._provider.read_user_info(tokens.access_token, claims["sub"], now=now)
            if "email" in claims:  # Whether it is verified must come from where it comes from.
                besides.pop("email_verified", None)
            claims = {**besides, **claims}
        person = read_person(claims, issuer=claims["iss"], role_claim=self._settings.role_claim)
        try:
            return await self._admit(person, now=now, origin=origin), kept["goal"]
        except SingleSignOnRefusedError:
            await self._record.record_failed_log_in(None, origin, at=now)
            raise

    async def _admit(self, proven: ProvenPerson, *, now: datetime, origin: ClientOrigin) -> User:
        """Return the account of a person: by the provider's name of them, by verified e-mail, or a new one."""
        grant = choose_grant(self._settings.role_map, proven.role_words)
        if self._settings.role_claim is not None and grant is None:
            raise SingleSignOnRefusedError(
                f"You are known to {self.name}, but none of your groups there has a role here. Ask an admin."
            )
        async with self._pool.acquire() as connection, connection.transaction():
            person_id = await self._find_or_make(connection, proven, grant, now, origin)
            author = make_stranger(origin, str(person_id))
            person, is_last_admin = await lock_with_admins(connection, person_id)
            if person.disabled_at is not None:
                raise SingleSignOnRefusedError("Your account here is disabled. Ask an admin.")
            if grant is not None:
                # The role follows the provider's.
                await self._check_grant(connection, grant)
                to = (grant.role, grant.account_id)
                await move_person(connection, person, to, author, now, is_last_admin=is_last_admin)
            found = await users.find_user_of_token(connection, person_id, None)
        assert found is not None
        return found[0]

    async def _find_or_make(
        self,
        connection: Connection,
        proven: ProvenPerson,
        grant: RoleGrant | None,
        now: datetime,
        origin: ClientOrigin,
    ) -> UUID:
        known = await connection.fetchval(BY_SUBJECT, proven.issuer, proven.subject)
        if known is not None:
            return known
        if proven.email is None:
            raise SingleSignOnRefusedError(
                f"{self.name} has not verified your e-mail address, so no account here can be yours."
            )
        person_id = await connection.fetchval(BY_EMAIL, proven.email)
        if person_id is None:
            if grant is None:
                raise SingleSignOnRefusedError(f"There is no account for {proven.email} here. Ask an admin.")
            person_id = await self._make(connection, proven.email, grant, now, origin)
        if not await connection.fetchval(LINK, person_id, proven.issuer, proven.subject):
            raise SingleSignOnRefusedError(
                f"The account of {proven.email} belongs to somebody else at {self.name}. Ask an admin."
            )
        author = make_stranger(origin, str(person_id))
        await record_event(connection, author, "single_sign_on_linked", USER, person_id, at=now)
        return person_id

    async def _make(
        self, connection: Connection, email: str, grant: RoleGrant, now: datetime, origin: ClientOrigin
    ) -> UUID:
        await self._check_grant(connection, grant)
        user = User(
            id=UserId(self._ids.make()), role=grant.role, account_id=grant.account_id, disabled_at=None
        )
        if not await users.insert_user(connection, user, email=email, password_hash=None, now=now):
            raise UnauthenticatedError(BEGUN_ELSEWHERE)
        person = await people.lock_person(connection, user.id)
        assert person is not None
        author = make_stranger(origin, str(user.id))
        changes = describe_creation(person)
        await record_event(connection, author, "create", USER, user.id, at=now, changes=changes)
        return user.id

    async def _check_grant(self, connection: Connection, grant: RoleGrant) -> None:
        try:
            await check_acts_for(connection, grant.role, grant.account_id)
        except ValidationFailedError as error:
            raise SingleSignOnRefusedError(
                f"The role of {grant.word} is set up wrong: ADLOOM_OIDC_ROLE_MAP {error.errors[0].message}. Tell an admin."
            ) from error
