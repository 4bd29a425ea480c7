"""User accounts over HTTP: who may log in, and changing your own password."""

from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

from fastapi import Depends, Query, status
from pydantic import AfterValidator, Field

from adloom.core.caller import Role
from adloom.core.errors import ForbiddenError, UnavailableError, make_field_error
from adloom.core.ids import UserId
from adloom.identity import store as users
from adloom.identity.account import store
from adloom.identity.account.changes import (
    change_time_zone,
    end_access,
    lock_person,
    lock_person_who_may_go,
    lock_with_admins,
    make_email_taken_error,
    move_person,
)
from adloom.identity.account.store import Person
from adloom.identity.acting_for import check_acts_for
from adloom.identity.api import SecurityAuthor, SessionsOfTheApp, require_admin_of
from adloom.identity.model import PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN, User
from adloom.identity.security_record import USER, record_event
from adloom.resource.audit.difference import describe_change, describe_creation, describe_deletion
from adloom.resource.forms import build_answer
from adloom.resource.shapes import TimeZone
from adloom.runtime.auth.passwords import Passwords
from adloom.runtime.http.api.dependencies import CurrentCaller, Database, Ids, Now, depend_on, make_router
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body, EmailAddress, Text, Text255


def _check_length(password: str) -> str:
    if len(password) < PASSWORD_LENGTH_MIN:
        raise ValueError(f"must have at least {PASSWORD_LENGTH_MIN} characters")
    return password


def _check_length_if_given(password: str | None) -> str | None:
    return None if password is None else _check_length(password)


Password = Annotated[Text, Field(max_length=PASSWORD_LENGTH_MAX, repr=False), AfterValidator(_check_length)]


ActsFor = Annotated[
    UUID | None, Field(description="The advertiser or publisher that it acts for; only for these roles.")
]


OwnTimeZone = Annotated[
    TimeZone | None,
    Field(description="Of its reports, charts and e-mails, such as `Europe/Berlin`; null is UTC."),
]


class AccountBody(Body):
    """A new user; advertisers and publishers act for an account of the catalog."""

    email: EmailAddress
    password: Annotated[
        Text | None,
        Field(
            max_length=PASSWORD_LENGTH_MAX,
            repr=False,
            description="Left out, the person chooses it by a link.",
        ),
        AfterValidator(_check_length_if_given),
    ] = None
    role: Role
    account_id: ActsFor = None
    time_zone: OwnTimeZone = None


class AccountPatch(Body):
    """What changes of an account; what is left out stays."""

    email: EmailAddress | None = None
    role: Role | None = None
    account_id: ActsFor = None
    time_zone: OwnTimeZone = None


class OwnAccountPatch(Body):
    """What you change of your own account; what is left out stays."""

    time_zone: OwnTimeZone = None


class PasswordBody(Body):
    """A password that an admin sets for a user."""

    password: Password


class RoleBody(Body):
    """Another role of a user."""

    role: Role
    account_id: ActsFor = None


class OwnPasswordBody(Body):
    """Your password, and the one that shall replace it."""

    current_password: Annotated[Text, Field(max_length=PASSWORD_LENGTH_MAX, repr=False)]
    new_password: Password


class AccountQuery(ListQuery):
    """How a list of accounts is filtered, sorted and paged."""

    SORTABLE: ClassVar[frozenset[str]] = frozenset({"created_at", "email", "role"})

    role: Role | None = None
    search: Text255 | None = None


AccountAnswer: Final = build_answer("AccountAnswer", "An account; its password is never shown.", Person)


class OwnAccountAnswer(Answer):
    """You, as the API knows you."""

    id: str
    role: Role
    account_id: UUID | None
    time_zone: Annotated[
        str | None, Field(description="Of your reports, charts and e-mails; null is UTC. Machines have none.")
    ]


def _make_no_password_error() -> ForbiddenError:
    return ForbiddenError("Only a user who logs in with a password has one.", code="ACCOUNT_HAS_NO_PASSWORD")


async def _get_own_id(caller: CurrentCaller) -> UUID:
    person_id = caller.person_id
    if person_id is None:
        raise _make_no_password_error()
    return person_id


PasswordsOfTheApp = Annotated[Passwords, depend_on("passwords")]
OwnId = Annotated[UUID, Depends(_get_own_id)]


class PasswordCheck:
    """Asks a person for the current password again; guesses are slowed down and recorded."""

    def __init__(  # noqa: PLR0913, PLR0917 - what the framework hands in
        self,
        own_id: OwnId,
        author: SecurityAuthor,
        sessions: SessionsOfTheApp,
        pool: Database,
        passwords: PasswordsOfTheApp,
        now: Now,
    ) -> None:
        self._own_id = own_id
        self._author = author
        self._attempts = sessions.attempts
        self._pool = pool
        self._passwords = passwords
        self._now = now

    async def check(self, password: str) -> User:
        """Return the person, as they are while they ask; raise unless the password is right."""
        tried = f"own password:{self._own_id}"
        await self._attempts.take(tried, now=self._now)
        async with self._pool.acquire() as connection:
            found = await users.find_user_of_token(connection, self._own_id, None)
            current = await store.read_password_hash(connection, self._own_id)
        if found is None or current is None:
            raise _make_no_password_error()
        try:
            is_right = await self._passwords.matches(
                password, current, client=self._author.subject, is_known=True
            )
        except UnavailableError:
            await self._attempts.give_back(tried)
            raise
        if not is_right:
            async with self._pool.acquire() as connection:
                await record_event(
                    connection, self._author, "password_guessed", USER, self._own_id, at=self._now
                )
            raise make_field_error(
                "currentPassword", "is not your password", "The current password is wrong."
            )
        await self._attempts.give_back(tried)
        return found[0]


OwnPassword = Annotated[PasswordCheck, Depends(PasswordCheck)]
ADMIN_ONLY = [Depends(require_admin_of("accounts"))]

router = make_router("/admin/accounts", "accounts", 400, 401, 403, 404, 409, 413, 503)


@router.get("/me")
async def read_own_account(caller: CurrentCaller, pool: Database) -> OwnAccountAnswer:
    """Return who you are."""
    person_id = caller.person_id
    time_zone = None
    if person_id is not None:
        async with pool.acquire() as connection:
            time_zone = await store.read_time_zone(connection, person_id)
    return OwnAccountAnswer(
        id=caller.subject, role=caller.role, account_id=caller.account_id, time_zone=time_zone
    )


@router.patch("/me")
async def edit_own_account(
    body: OwnAccountPatch, caller: CurrentCaller, author: SecurityAuthor, pool: Database, now: Now
) -> OwnAccountAnswer:
    """Change your own account: its time zone."""
    person_id = caller.person_id
    if person_id is None:
        raise ForbiddenError("Only a person's account can be changed.", code="ACCOUNT_OF_MACHINE")
    async with pool.acquire() as connection, connection.transaction():
        person = await lock_person(connection, person_id)
        if "time_zone" in body.model_fields_set:
            person = await change_time_zone(connection, person, body.time_zone, author, now)
    return OwnAccountAnswer(
        id=caller.subject, role=caller.role, account_id=caller.account_id, time_zone=person.time_zone
    )


@router.put("/me/password", status_code=status.HTTP_204_NO_CONTENT)
async def change_own_password(  # noqa: PLR0913, PLR0917 - what the framework hands in
    own_id: OwnId,
    body: OwnPasswordBody,
    own_password: OwnPassword,
    author: SecurityAuthor,
    pool: Database,
    passwords: PasswordsOfTheApp,
    now: Now,
) -> None:
    """Change your own password; all your log-ins end."""
    person = await own_password.check(body.current_password)
    hashed = await passwords.hash(body.new_password, client=author.subject)
    async with pool.acquire() as connection, connection.transaction():
        # Who has set another one meanwhile may want to keep out who has sent this.
        await users.lock_unchanged(connection, person)
        await users.set_password(connection, own_id, hashed)
        await users.end_log_ins(connection, own_id)
        await record_event(connection, author, "password_changed", USER, own_id, at=now)


@router.get("", dependencies=ADMIN_ONLY, response_model=Page[AccountAnswer])
async def list_accounts(query: Annotated[AccountQuery, Query()], pool: Database) -> Page[Any]:
    """List the accounts, disabled ones included."""
    async with pool.acquire() as connection:
        listed = await store.list_people(connection, query.page_request, role=query.role, search=query.search)
        return build_page(AccountAnswer, listed, query)


@router.post("", dependencies=ADMIN_ONLY, status_code=status.HTTP_201_CREATED, response_model=AccountAnswer)
async def create_account(  # noqa: PLR0913, PLR0917 - what the framework hands in
    body: AccountBody,
    author: SecurityAuthor,
    pool: Database,
    passwords: PasswordsOfTheApp,
    ids: Ids,
    now: Now,
) -> Answer:
    """Make an account; without a password, a link lets its owner choose one."""
    hashed = None if body.password is None else await passwords.hash(body.password, client=author.subject)
    user = User(id=UserId(ids.make()), role=body.role, account_id=body.account_id, disabled_at=None)
    async with pool.acquire() as connection, connection.transaction():
        await check_acts_for(connection, body.role, body.account_id)
        if not await users.insert_user(connection, user, email=body.email, password_hash=hashed, now=now):
            raise make_email_taken_error(body.email)
        await store.set_time_zone(connection, user.id, body.time_zone)
        person = await lock_person(connection, user.id)
        changes = describe_creation(person)
        await record_event(connection, author, "create", USER, user.id, at=now, changes=changes)
    return AccountAnswer.model_validate(person)


@router.put("/{person_id}/password", dependencies=ADMIN_ONLY, status_code=status.HTTP_204_NO_CONTENT)
async def set_password(  # noqa: PLR0913, PLR0917 - what the framework hands in
    person_id: UUID,
    body: PasswordBody,
    author: SecurityAuthor,
    pool: Database,
    passwords: PasswordsOfTheApp,
    now: Now,
) -> None:
    """Set the password of a user; all their log-ins end."""
    hashed = await passwords.hash(body.password, client=author.subject)
    async with pool.acquire() as connection, connection.transaction():
        person = await lock_person(connection, person_id)
        await users.set_password(connection, person.id, hashed)
        await users.end_log_ins(connection, person.id)
        await record_event(connection, author, "password_set", USER, person.id, at=now)


@router.patch("/{person_id}", dependencies=ADMIN_ONLY, response_model=AccountAnswer)
async def edit_account(
    person_id: UUID, body: AccountPatch, author: SecurityAuthor, pool: Database, now: Now
) -> Answer:
    """Change an account; another role, or another account to act for, ends all its log-ins and keys."""
    async with pool.acquire() as connection, connection.transaction():
        person, is_last_admin = await lock_with_admins(connection, person_id)
        role = body.role or person.role
        is_named = "account_id" in body.model_fields_set or role is not person.role
        account_id = body.account_id if is_named else person.account_id
        changed = await move_person(
            connection, person, (role, account_id), author, now, is_last_admin=is_last_admin
        )
        if body.email is not None and body.email != person.email:
            if not await store.set_email(connection, person.id, body.email):
                raise make_email_taken_error(body.email)
            # Links that went to the old address are no longer this person's.
            await users.delete_links(connection, person.id)
            before, changed = changed, await lock_person(connection, person_id)
            changes = describe_change(before, changed)
            await record_event(connection, author, "update", USER, person.id, at=now, changes=changes)
        if "time_zone" in body.model_fields_set:
            changed = await change_time_zone(connection, changed, body.time_zone, author, now)
        return AccountAnswer.model_validate(changed)


@router.put("/{person_id}/role", dependencies=ADMIN_ONLY, response_model=AccountAnswer)
async def set_role(
    person_id: UUID, body: RoleBody, author: SecurityAuthor, pool: Database, now: Now
) -> Answer:
    """Give a user another role; all their log-ins end, and their keys."""
    async with pool.acquire() as connection, connection.transaction():
        person, is_last_admin = await lock_with_admins(connection, person_id)
        to = (body.role, body.account_id)
        changed = await move_person(connection, person, to, author, now, is_last_admin=is_last_admin)
        return AccountAnswer.model_validate(changed)


@router.delete("/{person_id}", dependencies=ADMIN_ONLY, status_code=status.HTTP_204_NO_CONTENT)
async def remove_account(person_id: UUID, author: SecurityAuthor, pool: Database, now: Now) -> None:
    """Remove an account for good; its log-ins and keys end, and its address can be used again."""
    async with pool.acquire() as connection, connection.transaction():
        person = await lock_person_who_may_go(connection, person_id)
        await end_access(connection, person.id, author, now)
        await store.delete_person(connection, person.id)
        changes = describe_deletion(person)
        await record_event(connection, author, "delete", USER, person.id, at=now, changes=changes)


@router.patch("/{person_id}/disable", dependencies=ADMIN_ONLY, response_model=AccountAnswer)
async def disable_account(person_id: UUID, author: SecurityAuthor, pool: Database, now: Now) -> Answer:
    """Disable an account; all its log-ins end, and its keys are revoked."""
    async with pool.acquire() as connection, connection.transaction():
        person = await lock_person_who_may_go(connection, person_id)
        await store.set_disabled(connection, person.id, person.disabled_at or now)
        await end_access(connection, person.id, author, now)
        await record_event(connection, author, "disable", USER, person.id, at=now)
        return AccountAnswer.model_validate(await lock_person(connection, person_id))


@router.patch("/{person_id}/enable", dependencies=ADMIN_ONLY, response_model=AccountAnswer)
async def enable_account(person_id: UUID, author: SecurityAuthor, pool: Database, now: Now) -> Answer:
    """Enable a disabled account."""
    async with pool.acquire() as connection, connection.transaction():
        person = await lock_person(connection, person_id)
        await store.set_disabled(connection, person.id, None)
        await record_event(connection, author, "enable", USER, person.id, at=now)
        return AccountAnswer.model_validate(await lock_person(connection, person_id))
